// Blackwell's products with few columns, whose long operand is a: operands across and along memory,
// and a few columns of tensor memory at a time; one instruction per function. sm_100a and sm_103a:
// elsewhere they trap.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/tcgen05.cuh"

namespace device::ptx {

// Rows of `span` bytes, 64 or 128, under the swizzle of that width; eight rows are contiguous. With
// the depth along a row, steps along it are 32 bytes, 2 in the descriptor. With the depth across
// rows, the next `span` bytes of a row are `leading_bytes` further, and the product has
// kHeightMajorA.
__device__ __forceinline__ std::uint64_t tensor_rows_operand(std::uint32_t shared, int span,
                                                             std::uint32_t leading_bytes) {
    constexpr std::uint64_t kVersion = std::uint64_t{1} << 46;
    const std::uint64_t swizzle = std::uint64_t{span == 128 ? 2u : 4u} << 61;
    const std::uint64_t eight_rows = span * 8 / 16;
    return (shared & 0x3ffff) >> 4 | static_cast<std::uint64_t>(leading_bytes >> 4) << 16 |
           eight_rows << 32 | kVersion | swizzle;
}
constexpr std::uint32_t kHeightMajorA = 1u << 15;

// N contiguous without swizzle: packets of 16 bytes of it, one per step of the depth; the next
// packet of N is `packet_bytes` further. Its product has kWidthMajorB.
__device__ __forceinline__ std::uint64_t tensor_packets_operand(std::uint32_t shared,
                                                                std::uint32_t packet_bytes) {
    constexpr std::uint64_t kVersion = std::uint64_t{1} << 46;
    constexpr std::uint64_t kEightPackets = 8 * 16 >> 4;
    return (shared & 0x3ffff) >> 4 | kEightPackets << 16 |
           static_cast<std::uint64_t>(packet_bytes >> 4) << 32 | kVersion;
}

// As the function for 32 columns in tcgen05.cuh.
__device__ __forceinline__ void tensor_load(std::uint32_t (&words)[16], std::uint32_t address) {
    H2H_TCGEN05_ASM(
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];" : "=r"(
            words[0]),
        "=r"(words[1]), "=r"(words[2]), "=r"(words[3]), "=r"(words[4]), "=r"(words[5]),
        "=r"(words[6]), "=r"(words[7]), "=r"(words[8]), "=r"(words[9]), "=r"(words[10]),
        "=r"(words[11]), "=r"(words[12]), "=r"(words[13]), "=r"(words[14]),
        "=r"(words[15]) : "r"(address) : "memory");
}

__device__ __forceinline__ void tensor_load(std::uint32_t (&words)[8], std::uint32_t address) {
    H2H_TCGEN05_ASM(
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];" : "=r"(
            words[0]),
        "=r"(words[1]), "=r"(words[2]), "=r"(words[3]), "=r"(words[4]), "=r"(words[5]),
        "=r"(words[6]), "=r"(words[7]) : "r"(address) : "memory");
}

// As the function for 32 columns in tcgen05.cuh.
__device__ __forceinline__ void tensor_store(std::uint32_t address,
                                             const std::uint32_t (&words)[8]) {
    H2H_TCGEN05_ASM(
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"r"(
            address),
        "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(words[4]), "r"(words[5]),
        "r"(words[6]), "r"(words[7]) : "memory");
}

}  // namespace device::ptx
