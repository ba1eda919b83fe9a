// Launches the portable kernel with the chosen tile.
#pragma once

#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/gemm/portable/kernel.cuh"
#include "Kernels/gemm/portable/tiles.h"

namespace gemm::portable {

template <class Traits>
void launch_tile(const Gemm& params, const Config& config, cudaStream_t stream) {
    static_assert(sizeof(typename Traits::SharedStorage) <= 227 * 1024, "too much shared memory");
    device::Launch launch;
    launch.grid = dim3(static_cast<unsigned>(config.blocks));
    launch.block = dim3(Traits::kThreads);
    launch.shared_bytes = sizeof(typename Traits::SharedStorage);
    device::launch("gemm_portable", gemm_kernel<Traits>, launch, stream, params,
                   Walk(params.shape, Traits::kRows, Traits::kColumns));
}

template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        if (config.tile != index) return false;
        constexpr TileShape kTile = kTiles[index];
        launch_tile<Traits<T, kTile.rows, kTile.columns, kTile.warp_rows, kTile.warp_columns,
                           kTile.stages>>(params, config, stream);
        return true;
    });
    device::require(launched, "no portable kernel was built with the chosen tile");
}

}  // namespace gemm::portable
