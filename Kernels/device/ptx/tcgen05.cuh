// Blackwell's products: operands in shared memory, sums in tensor memory, one thread for a block or
// a pair of blocks; one instruction per function. sm_100a and sm_103a: elsewhere they trap.
//
// Tensor memory has 128 lanes by 512 columns of 32 bits. A product of 128 rows per block has row r
// in lane r and column c in column c. With kBlocks = 2 the even block of a pair issues for both:
// each holds its half of a's rows, half of b's columns, and the sums of its own rows.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "Kernels/device/ptx/memory.cuh"

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define H2H_TCGEN05_ASM(...) asm volatile(__VA_ARGS__)
#else
#define H2H_TCGEN05_ASM(...) __trap()
#endif

namespace device::ptx {

// Allocates columns, a power of two from 32 to 512, and writes their address to shared memory. A
// whole warp calls it, in both blocks of a pair; it waits while others hold too much.
template <int kBlocks>
__device__ __forceinline__ void tensor_memory_allocate(std::uint32_t* result, int columns) {
    if constexpr (kBlocks == 1) {
        H2H_TCGEN05_ASM("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                            shared_address(result)),
                        "r"(columns) : "memory");
    } else {
        H2H_TCGEN05_ASM("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                            shared_address(result)),
                        "r"(columns) : "memory");
    }
}

// Promises that this block allocates no more.
template <int kBlocks>
__device__ __forceinline__ void tensor_memory_relinquish() {
    if constexpr (kBlocks == 1) {
        H2H_TCGEN05_ASM("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    } else {
        H2H_TCGEN05_ASM("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    }
}

// Must happen before the block ends. A whole warp calls it, in both blocks of a pair.
template <int kBlocks>
__device__ __forceinline__ void tensor_memory_free(std::uint32_t address, int columns) {
    if constexpr (kBlocks == 1) {
        H2H_TCGEN05_ASM("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address),
                        "r"(columns));
    } else {
        H2H_TCGEN05_ASM("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address),
                        "r"(columns));
    }
}

// Order this thread's tensor-memory accesses before or after a synchronisation with other threads.
__device__ __forceinline__ void tensor_fence_before_sync() {
    H2H_TCGEN05_ASM("tcgen05.fence::before_thread_sync;" :: : "memory");
}
__device__ __forceinline__ void tensor_fence_after_sync() {
    H2H_TCGEN05_ASM("tcgen05.fence::after_thread_sync;" :: : "memory");
}

// An operand in rows of 128 bytes under the 128-byte swizzle, depth contiguous: eight rows are 1024
// bytes. Steps along the depth are 32 bytes, 2 in the descriptor.
__device__ __forceinline__ std::uint64_t tensor_operand(std::uint32_t shared) {
    constexpr std::uint64_t kVersion = std::uint64_t{1} << 46;
    constexpr std::uint64_t kSwizzle128 = std::uint64_t{2} << 61;
    return (shared & 0x3ffff) >> 4 | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
           kVersion | kSwizzle128;
}

// The same memory with rows along the depth and N contiguous: 64 elements per row, the next 64 of N
// `block_bytes` further. Steps of 16 along the depth are 2048 bytes. Its product has kWidthMajorB.
__device__ __forceinline__ std::uint64_t tensor_width_major_operand(std::uint32_t shared,
                                                                    std::uint32_t block_bytes) {
    constexpr std::uint64_t kVersion = std::uint64_t{1} << 46;
    constexpr std::uint64_t kSwizzle128 = std::uint64_t{2} << 61;
    return (shared & 0x3ffff) >> 4 | static_cast<std::uint64_t>(block_bytes >> 4) << 16 |
           std::uint64_t{1024 >> 4} << 32 | kVersion | kSwizzle128;
}
constexpr std::uint32_t kWidthMajorB = 1u << 16;

// Depth contiguous without swizzle, as 8-row by 16-byte core matrices: neighbours along the rows
// are 128 bytes apart, the two along the depth a whole column of core matrices.
__device__ __forceinline__ std::uint64_t tensor_core_matrix_operand(std::uint32_t shared,
                                                                    int rows) {
    constexpr std::uint64_t kCoreBytes = 128;
    constexpr std::uint64_t kVersion = std::uint64_t{1} << 46;
    const std::uint64_t column_bytes = rows / 8 * kCoreBytes;
    return (shared & 0x3ffff) >> 4 | (column_bytes >> 4) << 16 | (kCoreBytes >> 4) << 32 | kVersion;
}

// What a product of bf16, f16 or e4m3 operands with fp32 sums computes; rows are those of all its
// blocks.
template <class T>
__host__ __device__ constexpr std::uint32_t tensor_product(int rows, int columns) {
    constexpr std::uint32_t kFloatSums = 1u << 4;
    // f16 and e4m3 are number 0 of their kinds.
    constexpr std::uint32_t kType = std::is_same_v<T, __nv_bfloat16> ? 1 : 0;
    return kFloatSums | kType << 7 | kType << 10 | static_cast<std::uint32_t>(columns / 8) << 17 |
           static_cast<std::uint32_t>(rows / 16) << 24;
}

// Multiplies 32 bytes of the depth and writes the sums to tensor memory, or adds to them.
#define H2H_TENSOR_MULTIPLY(group, kind)                                                    \
    H2H_TCGEN05_ASM("{ .reg .pred add; setp.ne.u32 add, %4, 0; tcgen05.mma." group "." kind \
                    " [%0], %1, %2, %3, add; }" ::"r"(sums),                                \
                    "l"(a), "l"(b), "r"(product), "r"(static_cast<std::uint32_t>(add)) : "memory")
template <class T, int kBlocks>
__device__ __forceinline__ void tensor_multiply(std::uint32_t sums, std::uint64_t a,
                                                std::uint64_t b, std::uint32_t product, bool add) {
    constexpr bool kBytes = std::is_same_v<T, __nv_fp8_e4m3>;
    if constexpr (kBlocks == 1 && !kBytes) {
        H2H_TENSOR_MULTIPLY("cta_group::1", "kind::f16");
    } else if constexpr (kBlocks == 1) {
        H2H_TENSOR_MULTIPLY("cta_group::1", "kind::f8f6f4");
    } else if constexpr (!kBytes) {
        H2H_TENSOR_MULTIPLY("cta_group::2", "kind::f16");
    } else {
        H2H_TENSOR_MULTIPLY("cta_group::2", "kind::f8f6f4");
    }
}
#undef H2H_TENSOR_MULTIPLY

// The same for 16-bit operands in one block, with a in tensor memory: a row per lane, two
// neighbours of the depth per column. Steps of 16 along the depth are 8 columns.
__device__ __forceinline__ void tensor_multiply_from_memory(std::uint32_t sums, std::uint32_t a,
                                                            std::uint64_t b, std::uint32_t product,
                                                            bool add) {
    H2H_TCGEN05_ASM(
        "{ .reg .pred add; setp.ne.u32 add, %4, 0;"
        " tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, add; }" ::"r"(sums),
        "r"(a), "l"(b), "r"(product), "r"(static_cast<std::uint32_t>(add)) : "memory");
}

// Products whose scales lie in tensor memory, as tiles of 128 rows by 4 scales (scale_tiles.h): row
// r in lane r % 32 of column r / 32, four to a word.
//
// In a pair each block has the scales of its own rows of a, and those of all columns of b.
//
// Operands are e4m3 with a UE8M0 scale per 32 of the depth, or pairs of e2m1 with an e4m3 scale per
// 16 or a UE8M0 scale per 32.
enum class ScaledKind { kMxf8, kNvf4, kMxf4 };

// A tile in shared memory: 32 rows of 16 bytes, as 8-row core matrices of 128 bytes.
__device__ __forceinline__ std::uint64_t tensor_scale_tile(std::uint32_t shared) {
    constexpr std::uint64_t kVersion = std::uint64_t{1} << 46;
    return (shared & 0x3ffff) >> 4 | std::uint64_t{128 >> 4} << 32 | kVersion;
}

// Copies a tile to 4 columns of tensor memory, to the lanes of all four warps; in a pair, each
// block's own tile to its own memory. In order with later products of this thread.
template <int kBlocks>
__device__ __forceinline__ void tensor_copy_scales(std::uint32_t columns, std::uint64_t tile) {
    if constexpr (kBlocks == 1) {
        H2H_TCGEN05_ASM("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(columns),
                        "l"(tile) : "memory");
    } else {
        H2H_TCGEN05_ASM("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(columns),
                        "l"(tile) : "memory");
    }
}

// What a product of a kind, with fp32 sums, computes.
template <ScaledKind kKind>
__host__ __device__ constexpr std::uint32_t tensor_scaled_product(int rows, int columns) {
    constexpr std::uint32_t kUe8m0 = kKind == ScaledKind::kNvf4 ? 0 : 1u << 23;
    // e4m3 is number 0 of its kind, e2m1 number 1.
    constexpr std::uint32_t kTypes = kKind == ScaledKind::kMxf8 ? 0 : 1u << 7 | 1u << 10;
    return kUe8m0 | kTypes | static_cast<std::uint32_t>(columns / 8) << 17 |
           static_cast<std::uint32_t>(rows / 128) << 27;
}

// With which byte of each word of scales it starts: of e4m3 operands one of four steps of 32 along
// the depth, of UE8M0 scales of e2m1 byte 0 or 2, for the first or second 64.
__host__ __device__ constexpr std::uint32_t tensor_scale_byte(int byte) {
    return static_cast<std::uint32_t>(byte) << 4 | static_cast<std::uint32_t>(byte) << 29;
}

// Multiplies 32 bytes of the depth, times the scales; the sums as above.
#define H2H_TENSOR_MULTIPLY_SCALED(group, kind)                                             \
    H2H_TCGEN05_ASM("{ .reg .pred add; setp.ne.u32 add, %6, 0; tcgen05.mma." group "." kind \
                    " [%0], %1, %2, %3, [%4], [%5], add; }" ::"r"(sums),                    \
                    "l"(a), "l"(b), "r"(product), "r"(a_scales), "r"(b_scales),             \
                    "r"(static_cast<std::uint32_t>(add)) : "memory")
template <ScaledKind kKind, int kBlocks>
__device__ __forceinline__ void tensor_multiply_scaled(std::uint32_t sums, std::uint64_t a,
                                                       std::uint64_t b, std::uint32_t product,
                                                       std::uint32_t a_scales,
                                                       std::uint32_t b_scales, bool add) {
    if constexpr (kKind == ScaledKind::kNvf4 && kBlocks == 1) {
        H2H_TENSOR_MULTIPLY_SCALED("cta_group::1", "kind::mxf4nvf4.block_scale.scale_vec::4X");
    } else if constexpr (kKind == ScaledKind::kNvf4) {
        H2H_TENSOR_MULTIPLY_SCALED("cta_group::2", "kind::mxf4nvf4.block_scale.scale_vec::4X");
    } else if constexpr (kKind == ScaledKind::kMxf4 && kBlocks == 1) {
        H2H_TENSOR_MULTIPLY_SCALED("cta_group::1", "kind::mxf4.block_scale.scale_vec::2X");
    } else if constexpr (kKind == ScaledKind::kMxf4) {
        H2H_TENSOR_MULTIPLY_SCALED("cta_group::2", "kind::mxf4.block_scale.scale_vec::2X");
    } else if constexpr (kBlocks == 1) {
        H2H_TENSOR_MULTIPLY_SCALED("cta_group::1", "kind::mxf8f6f4.block_scale.scale_vec::1X");
    } else {
        H2H_TENSOR_MULTIPLY_SCALED("cta_group::2", "kind::mxf8f6f4.block_scale.scale_vec::1X");
    }
}
#undef H2H_TENSOR_MULTIPLY_SCALED

// Arrives at the barrier, in both blocks of a pair, once this thread's products so far are
// complete.
template <int kBlocks>
__device__ __forceinline__ void tensor_commit(std::uint64_t* barrier) {
    if constexpr (kBlocks == 1) {
        H2H_TCGEN05_ASM(
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                shared_address(barrier)) : "memory");
    } else {
        H2H_TCGEN05_ASM(
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster"
            ".b64 [%0], %1;" ::"r"(shared_address(barrier)),
            "h"(std::uint16_t{3}) : "memory");
    }
}

// 32 columns of the lanes that belong to this warp, 32 (warp % 4) and the next 31: one lane per
// thread. The lane is in the upper half of the address. Only after tensor_wait_for_loads may the
// words be used.
__device__ __forceinline__ void tensor_load(std::uint32_t (&words)[32], std::uint32_t address) {
    H2H_TCGEN05_ASM(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
        : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]), "=r"(words[4]),
          "=r"(words[5]), "=r"(words[6]), "=r"(words[7]), "=r"(words[8]), "=r"(words[9]),
          "=r"(words[10]), "=r"(words[11]), "=r"(words[12]), "=r"(words[13]), "=r"(words[14]),
          "=r"(words[15]), "=r"(words[16]), "=r"(words[17]), "=r"(words[18]), "=r"(words[19]),
          "=r"(words[20]), "=r"(words[21]), "=r"(words[22]), "=r"(words[23]), "=r"(words[24]),
          "=r"(words[25]), "=r"(words[26]), "=r"(words[27]), "=r"(words[28]), "=r"(words[29]),
          "=r"(words[30]), "=r"(words[31])
        : "r"(address)
        : "memory");
}

// Writes 32 columns of the lanes that belong to this warp.
__device__ __forceinline__ void tensor_store(std::uint32_t address,
                                             const std::uint32_t (&words)[32]) {
    H2H_TCGEN05_ASM(
        "tcgen05.st.sync.aligned.32x32b.x32.b32 [%0], "
        "{%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
        "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32};" ::"r"(
            address),
        "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(words[4]), "r"(words[5]),
        "r"(words[6]), "r"(words[7]), "r"(words[8]), "r"(words[9]), "r"(words[10]), "r"(words[11]),
        "r"(words[12]), "r"(words[13]), "r"(words[14]), "r"(words[15]), "r"(words[16]),
        "r"(words[17]), "r"(words[18]), "r"(words[19]), "r"(words[20]), "r"(words[21]),
        "r"(words[22]), "r"(words[23]), "r"(words[24]), "r"(words[25]), "r"(words[26]),
        "r"(words[27]), "r"(words[28]), "r"(words[29]), "r"(words[30]), "r"(words[31]) : "memory");
}

// Waits for this thread's stores.
__device__ __forceinline__ void tensor_wait_for_stores() {
    H2H_TCGEN05_ASM("tcgen05.wait::st.sync.aligned;" :: : "memory");
}

// Waits for this thread's loads. The compiler does not know that the words change until then, so
// pin them afterwards.
__device__ __forceinline__ void tensor_wait_for_loads() {
    H2H_TCGEN05_ASM("tcgen05.wait::ld.sync.aligned;" :: : "memory");
}

}  // namespace device::ptx
