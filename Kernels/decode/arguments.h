// Arguments of the decode kernels, and the launchers of each architecture, instantiated per element
// type of queries and cache by instance.cu.
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
    ListCut list;
    int team_warps;
    int teams;
    // Minimum per block.
    int block_teams;
    int page_shift;
    // In packets of 16 bytes.
    std::uint32_t page_stride;
    std::uint32_t token_stride;
    std::uint32_t head_stride;
    // Score scale in base 2: scale * log2(e).
    float scale_log2;
    float value_scale;
    // Type of queries and output over an FP8 cache; otherwise they have the kernel's type.
    bool is_bf16;

    // A block's team index, or -1 if it has none. Teams of a block are consecutive: heads of one
    // sequence, whose tokens share pages.
    __device__ int number_of_team(int in_block) const {
        const int block = blockIdx.x;
        // The first blocks get one more.
        const int fuller = teams - block_teams * gridDim.x;
        if (in_block >= block_teams + (block < fuller ? 1 : 0)) return -1;
        return block * block_teams + min(block, fuller) + in_block;
    }
};

__device__ __forceinline__ int first_segment(const Arguments& a, int share) {
    return a.even.segments > 0 ? a.even.first_segment(share) : share;
}
__device__ __forceinline__ Segment segment_of(const Arguments& a, int number) {
    return a.even.segments > 0 ? a.even.segment(number)
                               : a.list.segment(a.workspace.segments, number);
}

namespace portable {
template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Shape& shape, const Plan& plan, cudaStream_t stream);
}

namespace blackwell {
template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Shape& shape, bool head_major, const Plan& plan,
            cudaStream_t stream);
}

}  // namespace decode
