// Builds the tensor maps and launches Hopper's kernel with the chosen tile.
#pragma once

#include <algorithm>

#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/device/tensor_map.h"
#include "Kernels/prefill/hopper/kernel.cuh"
#include "Kernels/prefill/hopper/tiles.h"

namespace prefill::hopper {

// A packed tensor [rows, heads, head_dim] with the row dimension twice: coordinate (d, head, i, j)
// is element d of head in row i + j - rows, and zero unless i is below `rows`.
template <class T>
CUtensorMap packed_map(const void* address, int rows, int heads, int head_dim, int box_rows) {
    constexpr CUtensorMapDataType kType = std::is_same_v<T, __half>
                                              ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                              : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const cuuint64_t head_bytes = static_cast<cuuint64_t>(head_dim) * sizeof(T);
    const cuuint64_t row_bytes = head_bytes * heads;
    const auto shifted = reinterpret_cast<std::uintptr_t>(address) - row_bytes * rows;
    return device::tensor_map<4>(
        {kType,
         reinterpret_cast<const void*>(shifted),
         {static_cast<cuuint64_t>(head_dim), static_cast<cuuint64_t>(heads),
          static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(rows) + 1},
         {head_bytes, row_bytes, row_bytes},
         {64, 1, static_cast<cuuint32_t>(box_rows), 1}});
}

template <class Traits>
void launch_tile(const Prefill& params, cudaStream_t stream) {
    const auto map = [&](const void* address, int rows, int heads, int box_rows) {
        return packed_map<typename Traits::T>(address, rows, heads, params.head_dim, box_rows);
    };
    const Maps maps = {
        map(params.q, params.total_q, params.heads, Traits::kRows),
        map(params.k, params.total_kv, params.kv_heads, Traits::kKeys),
        map(params.v, params.total_kv, params.kv_heads, Traits::kKeys),
    };
    device::Launch shape;
    const int pieces = params.tile_count * params.heads;
    shape.grid = dim3(static_cast<unsigned>(std::min(pieces, device::multiprocessors())));
    shape.block = dim3(Traits::kThreads);
    shape.shared_bytes = Traits::kSharedBytes;
    device::launch("prefill_hopper", prefill_kernel<Traits>, shape, stream, arguments_of(params),
                   maps);
}

template <class T>
void launch(const Prefill& params, const Config& config, cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        constexpr TileShape kTile = kTiles[index];
        if (config.tile.head_dim != kTile.head_dim) return false;
        launch_tile<Traits<T, kTile.head_dim, kTile.rows, kTile.keys>>(params, stream);
        return true;
    });
    device::require(launched, "no Hopper kernel was built with the chosen tile");
}

}  // namespace prefill::hopper
