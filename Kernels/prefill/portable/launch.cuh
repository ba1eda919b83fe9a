// Launches the portable kernel with the chosen tile.
#pragma once

#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/prefill/portable/kernel.cuh"
#include "Kernels/prefill/portable/tiles.h"

namespace prefill::portable {

template <class Traits>
void launch_tile(const Prefill& params, cudaStream_t stream) {
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(params.tile_count) * params.heads);
    shape.block = dim3(Traits::kThreads);
    shape.shared_bytes = sizeof(typename Traits::Storage);
    device::launch("prefill_portable", prefill_kernel<Traits>, shape, stream, arguments_of(params));
}

template <class T>
void launch(const Prefill& params, const Config& config, cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        constexpr TileShape kTile = kTiles[index];
        if (!(config.tile == kTile)) return false;
        launch_tile<Traits<T, kTile.head_dim, kTile.rows, kTile.keys, kTile.value_dim>>(params,
                                                                                        stream);
        return true;
    });
    device::require(launched, "no portable kernel was built with the chosen tile");
}

}  // namespace prefill::portable
