// The two products of a tile by warpgroups (sm_90a): operands straight from shared memory.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/warpgroup_mma.cuh"
#include "Kernels/mla/products.cuh"

namespace mla {

// Waits until only the products of the last commit are under way.
__device__ __forceinline__ void wait_for_all_but_last() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
#endif
}

// Nothing that reads these sums moves up past here, where a wait has made them final: the compiler
// sees no tie between the wait and the registers.
template <int kCount>
__device__ __forceinline__ void pin(float (&sums)[kCount][4]) {
#pragma unroll
    for (int eight = 0; eight < kCount; ++eight) {
        asm volatile(""
                     : "+f"(sums[eight][0]), "+f"(sums[eight][1]), "+f"(sums[eight][2]),
                       "+f"(sums[eight][3]));
    }
}

// Starts the scores of all rows and this warpgroup's tokens.
template <class Tr>
__device__ __forceinline__ void start_keys_together(std::uint32_t queries, std::uint32_t keys,
                                                    Scores<Tr>& scores) {
    constexpr int kStepsPerColumn = 4;
    const std::uint32_t mine = keys + Tr::warp_column() * (Tr::kWarpTokens * 128);
    ptx::warpgroup_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
        const int column = step / kStepsPerColumn;
        const int depth = step % kStepsPerColumn * 32;
        ptx::multiply_64x32(scores[0],
                            ptx::depth_major_operand(queries + column * (Tr::kRows * 128) + depth),
                            ptx::depth_major_operand(mine + column * (Tr::kTokens * 128) + depth),
                            step > 0, typename Tr::T{});
    }
    ptx::warpgroup_commit();
}

// Scores as powers of two, once they are there.
template <class Tr>
__device__ __forceinline__ void finish_keys_together(Scores<Tr>& scores, float scale_log2) {
    ptx::warpgroup_wait();
    pin(scores[0]);
#pragma unroll
    for (auto& four : scores[0]) {
#pragma unroll
        for (float& score : four) score *= scale_log2;
    }
}

// Starts the sums of all rows and this warpgroup's dimensions over all tokens of the tile.
template <class Tr>
__device__ __forceinline__ void start_values_together(std::uint32_t weights, std::uint32_t values,
                                                      Softmax<Tr>& softmax) {
    constexpr std::uint32_t kColumnBytes = Tr::kTokens * 128;
    const std::uint32_t mine = values + Tr::warp_column() * (Tr::kWarpDims / 64) * kColumnBytes;
    ptx::warpgroup_fence();
#pragma unroll
    for (int step = 0; step < Tr::kTokens / 16; ++step) {
        ptx::multiply_add_64x256(softmax.sums[0], ptx::depth_major_operand(weights + step * 32),
                                 ptx::width_major_operand(mine + step * 2048, kColumnBytes),
                                 typename Tr::T{});
    }
    ptx::warpgroup_commit();
}

}  // namespace mla
