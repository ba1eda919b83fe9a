// Builds the tensor maps and launches Hopper's kernel with the chosen tile.
#pragma once

#include <utility>

#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/gemm/hopper/kernel.cuh"
#include "Kernels/gemm/hopper/tiles.h"
#include "Kernels/gemm/maps.cuh"

namespace gemm::hopper {

// The transposed result is the product of b and a.
inline Gemm transposed(Gemm params) {
    std::swap(params.a, params.b);
    std::swap(params.shape.rows, params.shape.n);
    return params;
}

template <class Traits>
void launch_tile(const Gemm& given, const Config& config, cudaStream_t stream) {
    using T = typename Traits::Element;
    const Gemm params = Traits::kTransposed ? transposed(given) : given;
    const Shape& shape = params.shape;
    const int a_groups = shape.layout == Layout::kMasked ? shape.groups : 1;
    const Walk walk(shape, Traits::kRows * Traits::kDown, Traits::kColumns * Traits::kAcross);
    Operands operands = {walk, Split(config.split)};
    operands.a = operand_map<T>(params.a, shape.k, shape.rows, a_groups, Traits::kBoxA);
    operands.b = operand_map<T>(params.b, shape.k, shape.n, shape.groups, Traits::kBoxB);
    operands.stores_boxes = shape.layout != Layout::kMasked && config.split == 1;
    if (Traits::kTransposed) {
        operands.out = out_map<T>(params.out, shape.rows, shape.n, 64, 8);
    } else if (Traits::kStoresBoxes && operands.stores_boxes) {
        operands.out = out_map<T>(params.out, shape.n, shape.rows, Traits::kChunk, 16);
    }
    device::Launch launch;
    launch.cluster_blocks = Traits::kPairs ? 2 : config.split;
    launch.grid = dim3(static_cast<unsigned>(config.blocks));
    launch.block = dim3(Traits::kThreads);
    launch.shared_bytes = Traits::kSharedBytes;
    device::launch("gemm_hopper", gemm_kernel<Traits>, launch, stream, params, operands);
}

template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream) {
    const auto launch_kind = [&](auto tile, auto kind) {
        constexpr TileShape kTile = kTiles[tile];
        constexpr Kind kKind = kKinds[kind];
        if constexpr (is_used(kTile, kScaled<T>, kKind.layout) &&
                      !(kTile.pairs() && kKind.splits)) {
            const Layout layout = params.shape.layout;
            const bool splits = layout == Layout::kDense ? config.split > 1 : kKind.splits;
            if (layout != kKind.layout || splits != kKind.splits) return false;
            constexpr Cluster kCluster = kKind.splits ? Cluster::kSplit : kTile.cluster;
            launch_tile<Traits<T, kKind.layout, kCluster, kTile.rows, kTile.columns, kTile.stages,
                               kTile.blocks, kTile.transposed>>(params, config, stream);
            return true;
        }
        return false;
    };
    const bool launched = device::any_index<std::size(kTiles)>([&](auto tile) {
        return config.tile == tile && device::any_index<std::size(kKinds)>(
                                          [&](auto kind) { return launch_kind(tile, kind); });
    });
    device::require(launched, "no Hopper kernel was built with the chosen tile");
}

}  // namespace gemm::hopper
