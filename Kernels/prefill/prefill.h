// Variable-length attention over whole prompts:
//   out[r, h] = softmax(scale * q[r, h] . k[keys of r, h / group]) . v[keys of r, h / group]
// Scores, softmax and sums in fp32; weights are rounded to the elements' type for the second
// product.
//
// Query i of a sequence with q queries and kv keys sees keys 0 to i + kv - q with the causal mask,
// and all of them without.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "Kernels/device/dtype.h"
#include "Kernels/prefill/config.h"
#include "Kernels/prefill/work.h"

namespace prefill {

// Shared by the blocks of a launch that draw work from them; zero before the first launch, and left
// zero. Launches that share them must not overlap.
struct WorkCounters {
    int drawn;
    int finished;
};

// What tiles with a part of their queries' keys leave; nothing if there are none.
struct Parts {
    const Merge* merges;  // [merge_count]
    float* sums;          // [part_rows, heads, value_dim]
    float2* maxima;       // [part_rows, heads]: largest score in base 2, sum of weights
    int merge_count;
    // Of the merge with the most.
    int most_rows;
};

// Tensors are dense, row major, 16-byte aligned, in device memory.
struct Prefill {
    const void* q;      // [total_q, heads, head_dim]
    const void* k;      // [total_kv, kv_heads, head_dim]
    const void* v;      // [total_kv, kv_heads, value_dim]
    void* out;          // [total_q, heads, value_dim]
    float* lse;         // [total_q, heads], natural logarithm; null if not wanted
    const Tile* tiles;  // [tile_count], cut to the config's rows / heads_per_tile
    WorkCounters* counters;
    Parts parts;  // only Hopper's and Blackwell's kernels have any
    int tile_count;
    // Query heads of one KV head that share a tile: 1, or all of a group. Only Hopper's kernel has
    // tiles of more than one.
    int heads_per_tile;
    // Query heads that are worked on before the next, whole groups. Portable kernels take all.
    int heads_at_once;
    int total_q;
    int total_kv;
    int heads;
    int kv_heads;
    int head_dim;
    int value_dim;
    bool causal;
    float scale;
    device::Dtype dtype;  // f16 or bf16
};

// A second kernel merges the parts, if there are any.
void launch(const Prefill& params, const Config& config, cudaStream_t stream);

// Used by the plain kernel in place of tiles.
struct PlainPrefill {
    Prefill base;
    const std::int32_t* starts_q;   // [sequences + 1]
    const std::int32_t* starts_kv;  // [sequences + 1]
    int sequences;
};

// One warp per query and head, fp32 arithmetic throughout, nothing clever.
void launch_plain(const PlainPrefill& params, cudaStream_t stream);

}  // namespace prefill
