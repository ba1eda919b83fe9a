// Builds the tensor maps and launches Blackwell's kernel with the chosen tile.
#pragma once

#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/gemm/blackwell/kernel.cuh"
#include "Kernels/gemm/blackwell/tiles.h"
#include "Kernels/gemm/maps.cuh"

namespace gemm::blackwell {

template <class Traits>
void launch_tile(const Gemm& params, const Config& config, cudaStream_t stream) {
    using T = typename Traits::Element;
    const Shape& shape = params.shape;
    const bool masked = shape.layout == Layout::kMasked;
    Operands operands = {Walk(shape, Traits::kRows, Traits::kColumns)};
    operands.a = operand_map<T>(params.a, shape.k, shape.rows, masked ? shape.groups : 1,
                                Traits::kBlockRows);
    operands.b = operand_map<T>(params.b, shape.k, shape.n, shape.groups, Traits::kBlockColumns);
    if constexpr (kBlockScaled<T>) {
        operands.a_scales = scale_map<T>(params.a_scales, shape.k, shape.rows,
                                         masked ? shape.groups : 1, Traits::kScaleTiles, 1);
        operands.b_scales = scale_map<T>(params.b_scales, shape.k, shape.n, shape.groups,
                                         Traits::kScaleTiles, Traits::kScaleTilesDown);
    }
    operands.stores_boxes = !masked;
    if (!masked) operands.out = out_map<T>(params.out, shape.n, shape.rows, 64, 32);
    device::Launch launch;
    launch.cluster_blocks = Traits::kBlocks;
    launch.grid = dim3(static_cast<unsigned>(config.blocks));
    launch.block = dim3(Traits::kThreads);
    launch.shared_bytes = Traits::kSharedBytes;
    device::launch("gemm_blackwell", gemm_kernel<Traits>, launch, stream, params, operands);
}

template <class T>
constexpr Scales kScales = kBlockScaled<T> ? Scales::kTiles
                           : kScaled<T>    ? Scales::kBlocks
                                           : Scales::kNone;

template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        constexpr TileShape kTile = kTiles[index];
        if constexpr (kTile.scales == kScales<T>) {
            if (config.tile != index) return false;
            launch_tile<Traits<T, kTile.blocks, kTile.columns, kTile.stages>>(params, config,
                                                                              stream);
            return true;
        }
        return false;
    });
    device::require(launched, "no Blackwell kernel was built with the chosen tile");
}

}  // namespace gemm::blackwell
