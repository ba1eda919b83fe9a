// Arguments of the latent-attention kernels.
#pragma once

#include <cstdint>

#include "Kernels/mla/mla.h"

namespace mla {

struct Arguments {
    const void* q;
    const void* cache;
    const std::int32_t* pages;
    void* out;
    Workspace workspace;
    int q_len;
    int heads;
    int rows;
    int row_blocks;
    int page_shift;
    // Score scale in base 2, including the cache's: scale * cache_scale * log2(e).
    float scale_log2;
    // The cache's scale, for the result.
    float value_scale;
};

// A row of queries in memory; rows past the last repeat it, and their results are never stored.
__device__ __forceinline__ std::int64_t query_row(const Arguments& a, int sequence, int row) {
    return static_cast<std::int64_t>(sequence) * a.rows + min(row, a.rows - 1);
}

}  // namespace mla
