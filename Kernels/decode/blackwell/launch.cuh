// Builds the tensor maps and launches Blackwell's decode kernel with the chosen tile.
#pragma once

#include <algorithm>
#include <limits>

#include "Kernels/decode/blackwell/kernel.cuh"
#include "Kernels/decode/blackwell/tiles.h"
#include "Kernels/device/any_index.h"
#include "Kernels/device/bounded_rows.cuh"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/device/tensor_map.h"

namespace decode::blackwell {

// The pool as tokens of `heads` heads, (x, head, rows): a copy may end at any token, and what
// follows arrives as zeros.
template <class Tr>
CUtensorMap pool_map(const void* address, int rows, int heads, int box_tokens) {
    constexpr CUtensorMapDataType kType = Tr::kFp8 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                          : std::is_same_v<typename Tr::T, __half>
                                              ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                              : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const cuuint64_t row_bytes = static_cast<cuuint64_t>(Tr::kRowBytes) * heads;
    const auto [sizes, strides] = device::bounded_rows(rows, row_bytes);
    return device::tensor_map<5>(
        {kType,
         address,
         {Tr::kDim, static_cast<cuuint64_t>(heads), sizes[0], sizes[1], sizes[2]},
         {Tr::kRowBytes, strides[0], strides[1], strides[2]},
         {Tr::kPartDim / Tr::kChunks, 1, static_cast<cuuint32_t>(box_tokens), 1, 1},
         Tr::kSpan == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B});
}

template <class Tr>
void launch_tile(const Arguments& arguments, const Shape& sizes, bool head_major, const Plan& plan,
                 cudaStream_t stream) {
    static_assert(kSharedBytes<Tr> <= 227 * 1024, "too much shared memory");
    static_assert(Tr::kStages >= 4, "keys and values of two tiles, or of one with two parts");
    // With one head per row, a page of a head is a run of rows.
    const int heads = head_major ? 1 : sizes.kv_heads;
    const std::int64_t rows =
        std::int64_t{sizes.pool_pages} * sizes.page_size * (sizes.kv_heads / heads);
    device::require(rows < std::numeric_limits<int>::max(), "the pool has ", rows,
                    " rows; fewer than 2^31 - 1 are supported");
    const auto map = [&](const void* pages) {
        return pool_map<Tr>(pages, static_cast<int>(rows), heads,
                            std::min(sizes.page_size, kTokens));
    };
    const Cache cache = {map(arguments.k_pages), map(arguments.v_pages), sizes.kv_heads, head_major,
                         plan.cluster_blocks};
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(plan.blocks));
    shape.block = dim3(kThreads);
    shape.cluster_blocks = plan.cluster_blocks;
    shape.shared_bytes = kSharedBytes<Tr>;
    device::launch("decode_blackwell", decode_kernel<Tr>, shape, stream, arguments, cache);
}

template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Shape& shape, bool head_major, const Plan& plan,
            cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        constexpr TileShape kTile = kTiles[index];
        if constexpr (kTile.cache_bytes == kCacheBytes) {
            if (shape.head_dim == kTile.head_dim && plan.config.row_tiles == kTile.row_tiles) {
                using Tile = Traits<T, kTile.head_dim, kTile.row_tiles, kCacheBytes>;
                launch_tile<Tile>(arguments, shape, head_major, plan, stream);
                return true;
            }
        }
        return false;
    });
    device::require(launched, "no Blackwell decode kernel was built with the chosen tile");
}

}  // namespace decode::blackwell
