// Shared memory as the instructions that copy and wait address it.
#pragma once

#include <cstdint>

namespace device::ptx {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace device::ptx
