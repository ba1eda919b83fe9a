// Copies of contiguous bytes by the copy engine, without a tensor map.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"

namespace device::ptx {

// Addresses and size are multiples of 16 bytes. The bytes count towards `barrier`'s phase, and are
// visible to who has waited for it.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, uint32_t bytes,
                                          uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}

}  // namespace device::ptx
