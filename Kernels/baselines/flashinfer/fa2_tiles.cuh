// Include before flashinfer/attention/prefill.cuh: compiles each kernel only for the KV tile that
// the library chooses on the devices we build for, not for all four.
//
// The library computes the tile from the shared memory of a multiprocessor, which is 228 KiB on
// both Hopper and Blackwell. The library's own code makes the choice again at run time, and a
// different result is an error.
#pragma once

#include <cstdint>
#include <flashinfer/utils.cuh>

namespace fi {

constexpr std::uint32_t largest_tile(std::uint32_t most) {
    return most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1;
}

// Two blocks share a multiprocessor; 16 rows of K and V per tile and warp, two bytes per element.
constexpr std::uint32_t kv_tile(std::uint32_t q_rows, std::uint32_t head_dim,
                                std::uint32_t value_dim, std::uint32_t q_tiles,
                                std::uint32_t kv_warps) {
    const std::uint32_t block_bytes = 233472 / 2;
    const std::uint32_t tile_bytes = (head_dim + value_dim) * 16 * kv_warps * 2;
    const std::uint32_t fits = (block_bytes - q_rows * head_dim * 2) / tile_bytes;
    return largest_tile(fits < 8 / q_tiles ? fits : 8 / q_tiles);
}

}  // namespace fi

#undef DISPATCH_NUM_MMA_KV
#define DISPATCH_NUM_MMA_KV(max_mma_kv, NUM_MMA_KV, ...)                                \
    {                                                                                   \
        constexpr size_t NUM_MMA_KV =                                                   \
            fi::kv_tile(CTA_TILE_Q, HEAD_DIM_QK, HEAD_DIM_VO, NUM_MMA_Q, NUM_WARPS_KV); \
        if (fi::largest_tile(max_mma_kv) != NUM_MMA_KV) {                               \
            FLASHINFER_ERROR(                                                           \
                "this build has the KV tile of 228 KiB of shared memory a "             \
                "multiprocessor only, and the library chooses another one here");       \
        }                                                                               \
        __VA_ARGS__                                                                     \
    }
