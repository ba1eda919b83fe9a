// Builds the tensor maps and launches Hopper's kernel with the chosen tile.
#pragma once

#include "Kernels/device/any_index.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/device/tensor_map.h"
#include "Kernels/gemm/hopper/kernel.cuh"
#include "Kernels/gemm/hopper/tiles.h"

namespace gemm::hopper {

template <class T>
constexpr CUtensorMapDataType kMapType =
    kScaled<T>                  ? CU_TENSOR_MAP_DATA_TYPE_UINT8
    : std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

// An operand of `groups` matrices of `rows` x k, in boxes of `box_rows` rows by 128 bytes of k.
template <class T>
CUtensorMap operand_map(const void* address, int k, int rows, int groups, int box_rows) {
    const cuuint64_t line_bytes = static_cast<cuuint64_t>(k) * sizeof(T);
    return device::tensor_map<3>({kMapType<T>,
                                  address,
                                  {static_cast<cuuint64_t>(k), static_cast<cuuint64_t>(rows),
                                   static_cast<cuuint64_t>(groups)},
                                  {line_bytes, line_bytes * rows},
                                  {128 / sizeof(T), static_cast<cuuint32_t>(box_rows), 1}});
}

// The result, in boxes of 16 rows.
template <class T>
CUtensorMap out_map(const void* address, int n, int rows, int box_columns) {
    return device::tensor_map<2>(
        {kMapType<OutOf<T>>,
         address,
         {static_cast<cuuint64_t>(n), static_cast<cuuint64_t>(rows)},
         {static_cast<cuuint64_t>(n) * sizeof(OutOf<T>)},
         {static_cast<cuuint32_t>(box_columns), 16},
         box_columns == 64 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B});
}

template <class Traits>
void launch_tile(const Gemm& params, const Config& config, cudaStream_t stream) {
    using T = typename Traits::Element;
    const Shape& shape = params.shape;
    const int a_groups = shape.layout == Layout::kMasked ? shape.groups : 1;
    Operands operands = {};
    operands.a = operand_map<T>(params.a, shape.k, shape.rows, a_groups, Traits::kRows);
    operands.b = operand_map<T>(params.b, shape.k, shape.n, shape.groups, Traits::kColumns);
    operands.split = config.split;
    operands.stores_boxes = shape.layout != Layout::kMasked && config.split == 1;
    if (Traits::kStoresBoxes && operands.stores_boxes) {
        operands.out = out_map<T>(params.out, shape.n, shape.rows, Traits::kChunk);
    }
    device::Launch launch;
    launch.cluster_blocks = config.split;
    launch.grid = dim3(static_cast<unsigned>(config.blocks));
    launch.block = dim3(Traits::kThreads);
    launch.shared_bytes = Traits::kSharedBytes;
    device::launch("gemm_hopper", gemm_kernel<Traits>, launch, stream, params, operands);
}

template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream) {
    const bool launched = device::any_index<std::size(kTiles)>([&](auto index) {
        constexpr TileShape kTile = kTiles[index];
        if constexpr (use_of(kTile, kScaled<T>) != Use::kNever) {
            if (config.tile != index) return false;
            launch_tile<Traits<T, kTile.rows, kTile.columns, kTile.stages, kTile.blocks>>(
                params, config, stream);
            return true;
        }
        return false;
    });
    device::require(launched, "no Hopper kernel was built with the chosen tile");
}

}  // namespace gemm::hopper
