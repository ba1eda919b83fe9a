// Decode attention over a paged cache: out = softmax(scale * q k^T) v for the few new tokens of
// each sequence. Query i of q_len sees the first length - q_len + 1 + i positions; one that sees
// nothing yields 0. Scores, softmax and sums are fp32; weights are rounded to the element type for
// the second product.
//
// The cache has the queries' element type, or FP8 e4m3 with one scale for all keys and one for all
// values.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "Kernels/decode/config.h"
#include "Kernels/device/dtype.h"
#include "Kernels/device/paged/carver.h"

namespace decode {

// Tensors are dense and 16-byte aligned. Pages are [page_size, kv_heads, head_dim], or with
// `head_major` [kv_heads, page_size, head_dim].
struct Decode {
    const void* q;              // [batch, q_len, heads, head_dim]
    const void* k_pages;        // [pool_pages, ...]
    const void* v_pages;        // [pool_pages, ...]
    const std::int32_t* pages;  // the page table's entries, on the device
    void* out;                  // [batch, q_len, heads, head_dim]
    Shape shape;
    bool head_major;
    device::Dtype dtype;  // f16 or bf16
    // Scales of scores, including the keys' scale, and of values.
    float scale;
    float value_scale;
};

// A plan on the device, and space for partial results. Counters are 0 between launches.
struct Workspace {
    const Segment* segments;
    std::int32_t* counters;  // [items, row blocks]
    float* partials;         // [slots, row blocks, rows per block, head_dim]
    float2* maxima;          // [slots, row blocks, rows per block]: largest score, sum of weights
};

// The sections of a plan's workspace, taken from the carver's memory.
Workspace carve(device::Carver& carver, const Plan& plan, const Shape& shape);

// One kernel: the last team to arrive at an item merges its parts.
void launch(const Decode& params, const Plan& plan, const Workspace& workspace,
            cudaStream_t stream);

// One block per query and head, in fp32: the gate compares whole tensors with it. Reads the table's
// offsets and lengths from the device.
void launch_plain(const Decode& params, const std::int32_t* indptr, const std::int32_t* lengths,
                  cudaStream_t stream);

}  // namespace decode
