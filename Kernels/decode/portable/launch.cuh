// Launches the decode kernel with the chosen tile.
#pragma once

#include "Kernels/decode/portable/kernel.cuh"
#include "Kernels/decode/portable/tiles.h"
#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"

namespace decode::portable {

template <class Tr>
void launch_tile(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    static_assert(Tr::kMostWarps * sizeof(WarpStorage<Tr>) + 2 * 1024 <= 228 * 1024,
                  "two blocks of half the warps exceed the shared memory of an SM");
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(plan.blocks));
    shape.block = dim3(static_cast<unsigned>(32 * plan.block_warps));
    shape.shared_bytes = plan.block_warps * sizeof(WarpStorage<Tr>);
    device::launch("decode", decode_kernel<Tr>, shape, stream, arguments);
}

template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Shape& shape, const Plan& plan, cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        constexpr TileShape kTile = kTiles[index];
        if (shape.head_dim != kTile.head_dim || plan.config.row_tiles != kTile.row_tiles) {
            return false;
        }
        launch_tile<Traits<T, kTile.head_dim, kTile.row_tiles, kCacheBytes>>(arguments, plan,
                                                                             stream);
        return true;
    });
    device::require(launched, "no decode kernel was built with the chosen tile");
}

}  // namespace decode::portable
