// Two blocks of a cluster that work as one: copies and arrivals that signal the even block's
// barriers, one instruction per function. sm_100a and sm_103a: elsewhere they trap.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/device/ptx/memory.cuh"

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define H2H_PAIR_ASM(...) asm volatile(__VA_ARGS__)
#else
#define H2H_PAIR_ASM(...) __trap()
#endif

namespace device::ptx {

// A box to this block's shared memory, whose bytes count toward a barrier of either block: an
// address from peer_address.
__device__ __forceinline__ void load_box_of_pair(void* shared, const CUtensorMap& map,
                                                 std::uint32_t barrier, int x, int y, int z) {
    H2H_PAIR_ASM(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".cta_group::2 [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}

__device__ __forceinline__ void load_box_of_pair(void* shared, const CUtensorMap& map,
                                                 std::uint32_t barrier, int x, int y, int z,
                                                 int w) {
    H2H_PAIR_ASM(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        ".cta_group::2 [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

// True once the phase of that parity is complete, also by arrivals from other blocks.
__device__ __forceinline__ bool mbarrier_try_wait_cluster(std::uint64_t* barrier,
                                                          std::uint32_t parity) {
    std::uint32_t complete = 0;
    H2H_PAIR_ASM(
        "{\n"
        ".reg .pred done;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n"
        "}" : "=r"(complete) : "r"(shared_address(barrier)),
        "r"(parity) : "memory");
    return complete != 0;
}

}  // namespace device::ptx
