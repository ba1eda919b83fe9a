// Builds the tensor maps and launches Blackwell's kernel with the chosen tile.
#pragma once

#include <algorithm>

#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/prefill/blackwell/kernel.cuh"
#include "Kernels/prefill/blackwell/tiles.h"

namespace prefill::blackwell {

template <class Traits>
void launch_tile(const Prefill& params, cudaStream_t stream) {
    using T = typename Traits::T;
    const Maps maps = {
        bounded_map<T>(params.q, params.total_q, params.heads, Traits::kHeadDim, Traits::kRows),
        bounded_map<T>(params.k, params.total_kv, params.kv_heads, Traits::kHeadDim, Traits::kKeys),
        bounded_map<T>(params.v, params.total_kv, params.kv_heads, Traits::kValueDim,
                       Traits::kValueRows),
    };
    device::Launch shape;
    const int pieces = params.tile_count * params.heads;
    shape.grid = dim3(static_cast<unsigned>(std::min(pieces, device::multiprocessors())));
    shape.block = dim3(Traits::kThreads);
    shape.shared_bytes = Traits::kSharedBytes;
    device::launch("prefill_blackwell", prefill_kernel<Traits>, shape, stream, arguments_of(params),
                   maps);
}

template <class T>
void launch(const Prefill& params, const Config& config, cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        constexpr TileShape kTile = kTiles[index];
        if (!(config.tile == kTile)) return false;
        launch_tile<Traits<T, kTile.head_dim, kTile.rows, kTile.value_dim>>(params, stream);
        return true;
    });
    device::require(launched, "no Blackwell kernel was built with the chosen tile");
}

}  // namespace prefill::blackwell
