// Launches the portable kernel with the chosen tile.
#pragma once

#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/mla/portable/kernel.cuh"
#include "Kernels/mla/portable/tiles.h"
#include "Kernels/mla/shelves.h"

namespace mla::portable {

template <class Tr>
void launch_tile(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    static_assert(Tr::kBlocks * (sizeof(SharedStorage<Tr>) + 1024) <= 228 * 1024,
                  "the blocks of an SM do not fit its shared memory");
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(plan.blocks()));
    shape.block = dim3(Tr::kThreads);
    shape.shared_bytes = sizeof(SharedStorage<Tr>);
    device::launch("mla_decode", mla_kernel<Tr>, shape, stream, arguments);
}

template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        if (plan.config.tile != index) return false;
        constexpr TileShape kTile = kTiles[index];
        // As many bytes under way, whatever the cache's type.
        constexpr int kStages = kTile.stages * (2 / kCacheBytes);
        using Tr = Traits<T, kCacheBytes, kTile.row_tiles, kTile.warp_rows, kTile.warp_columns,
                          kTile.tokens, kStages, kTile.blocks>;
        static_assert(Tr::kRows == kTile.rows, "the warps cover the rows of the tile");
        launch_tile<Tr>(arguments, plan, stream);
        return true;
    });
    device::require(launched, "no portable kernel was built with the chosen tile");
}

}  // namespace mla::portable
