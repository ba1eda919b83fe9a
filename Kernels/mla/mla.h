// Multi-head latent attention decode over a paged cache. All heads share one cache: a token's row
// is 512 latent elements and 64 rotary ones, like a query; its score for a head is scale * (query .
// row), its value the latent part. Query i of q_len sees the first length - q_len + 1 + i
// positions; one that sees nothing yields 0. Scores, softmax and sums are fp32; weights are rounded
// to the element type for the second product.
//
// The cache has the queries' element type, or FP8 e4m3 with one scale.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "Kernels/device/dtype.h"
#include "Kernels/device/paged/carver.h"
#include "Kernels/mla/config.h"

namespace mla {

// Tensors are dense and 16-byte aligned.
struct MlaDecode {
    const void* q;              // [batch, q_len, heads, 576]
    const void* cache;          // [pool_pages, page_size, 576]
    const std::int32_t* pages;  // the page table's entries, on the device
    void* out;                  // [batch, q_len, heads, 512]
    Shape shape;
    device::Dtype dtype;  // of queries and output: f16 or bf16
    float scale;
    // Factor of the cache's elements: 1 except for FP8.
    float cache_scale;
};

// A plan on the device, and space for partial results.
struct Workspace {
    const Segment* segments;
    const std::int32_t* share_begin;
    const Segment* first_segments;
    const Merge* merges;
    float* partials;  // [slots, rows of all row blocks, 512]
    float2* maxima;   // [slots, rows of all row blocks]: largest score, sum of weights
};

// The sections of a plan's workspace, taken from the carver's memory.
Workspace carve(device::Carver& carver, const Plan& plan);

// Two kernels: the second merges the parts of sequences that were split, and is skipped if none
// was.
void launch(const MlaDecode& params, const Plan& plan, const Workspace& workspace,
            cudaStream_t stream);

// One block per query and head, in fp32: the gate compares whole tensors with it. Reads the table's
// offsets and lengths from the device.
void launch_plain(const MlaDecode& params, const std::int32_t* indptr, const std::int32_t* lengths,
                  cudaStream_t stream);

}  // namespace mla
