// What the kernels of decode are given, and the launchers of their shelves, instantiated per
// element type of queries and cache by instance.cu.
#pragma once

#include "Kernels/decode/decode.h"

namespace decode {

struct Arguments {
    const void* q;
    const void* k_pages;
    const void* v_pages;
    const std::int32_t* pages;
    void* out;
    Workspace workspace;
    int q_len;
    int heads;
    Divisor group;
    int rows;
    Divisor row_blocks;
    EvenCut even;
    int team_warps;
    int teams;
    // Of each block at least.
    int block_teams;
    int page_shift;
    // In packets of 16 bytes.
    std::uint32_t page_stride;
    std::uint32_t token_stride;
    std::uint32_t head_stride;
    // Of scores to powers of two: scale * log2(e).
    float scale_log2;
    float value_scale;
    // The type of queries and output over an FP8 cache; else it is that of the kernel.
    bool is_bf16;

    // Number of a block's team; -1 where there is none. Those of a block follow each other: heads
    // of one sequence, whose tokens lie in the same pages.
    __device__ int number_of_team(int in_block) const {
        const int block = blockIdx.x;
        // The first blocks have one more.
        const int fuller = teams - block_teams * gridDim.x;
        if (in_block >= block_teams + (block < fuller ? 1 : 0)) return -1;
        return block * block_teams + min(block, fuller) + in_block;
    }
};

namespace portable {
template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Shape& shape, const Plan& plan, cudaStream_t stream);
}

}  // namespace decode
