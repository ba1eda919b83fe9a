// Packets of one unit of 16 bytes or, on Blackwell, two: what a thread moves in one instruction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "Kernels/device/built.h"
#include "Kernels/device/machine.h"
#include "Kernels/device/ptx/memory.cuh"

namespace device {

template <int kUnits>
__device__ __forceinline__ void load_packet(const void* address, uint4 (&packet)[kUnits]) {
    static_assert(kUnits == 1 || kUnits == 2, "a load has 16 or 32 bytes");
    if constexpr (kUnits == 1) {
        packet[0] = ptx::load_16(address);
    } else {
        ptx::load_32(address, packet);
    }
}

template <int kUnits>
__device__ __forceinline__ void store_packet(void* address, const uint4 (&packet)[kUnits]) {
    static_assert(kUnits == 1 || kUnits == 2, "a store has 16 or 32 bytes");
    if constexpr (kUnits == 1) {
        ptx::store_16(address, packet[0]);
    } else {
        ptx::store_32(address, packet);
    }
}

// Calls `prepare` with the units of a packet, as a constant: two where the current machine has
// them and every tensor, of those that exist, begins at a multiple of 32 bytes.
template <class Prepare>
auto with_units(std::initializer_list<const void*> tensors, Prepare prepare) {
    if constexpr (built(Arch::kBlackwell)) {
        const auto is_aligned = [](const void* address) {
            return reinterpret_cast<std::uintptr_t>(address) % 32 == 0;
        };
        if (current_machine().arch == Arch::kBlackwell &&
            std::all_of(tensors.begin(), tensors.end(), is_aligned)) {
            return prepare(std::integral_constant<int, 2>());
        }
    }
    return prepare(std::integral_constant<int, 1>());
}

}  // namespace device
