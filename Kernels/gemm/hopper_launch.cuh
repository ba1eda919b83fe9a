// Launches Hopper's kernel with the tiles that config.cc chooses from.
#pragma once

#include <stdexcept>

#include "Kernels/device/launch.h"
#include "Kernels/device/tensor_map.h"
#include "Kernels/gemm/hopper.cuh"
#include "Kernels/gemm/hopper_launch.h"

namespace gemm {

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

template <class T, int kRows, int kColumns, int kStages, int kBlocks>
void launch_hopper_tile(const Gemm& params, const Config& config, cudaStream_t stream) {
    using Traits = HopperTraits<T, kRows, kColumns, kStages, kBlocks>;
    const Shape& shape = params.shape;
    const int a_groups = shape.layout == Layout::kMasked ? shape.groups : 1;
    HopperOperands operands = {};
    operands.a = operand_map<T>(params.a, shape.k, shape.rows, a_groups, kRows);
    operands.b = operand_map<T>(params.b, shape.k, shape.n, shape.groups, kColumns);
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
    device::launch("gemm_hopper", hopper_kernel<Traits>, launch, stream, params, operands);
}

// The tiles are those of kHopperTiles in config.cc.
template <class T>
void launch_hopper_type(const Gemm& params, const Config& config, cudaStream_t stream) {
    const auto is = [&](int rows, int columns, int stages) {
        return config.tile_rows == rows && config.tile_columns == columns &&
               config.stages == stages;
    };
    if (is(32, 64, 7)) return launch_hopper_tile<T, 32, 64, 7, 2>(params, config, stream);
    if (is(32, 128, 4)) return launch_hopper_tile<T, 32, 128, 4, 2>(params, config, stream);
    if (is(64, 128, 4)) return launch_hopper_tile<T, 64, 128, 4, 2>(params, config, stream);
    if (is(128, 128, 5)) return launch_hopper_tile<T, 128, 128, 5, 1>(params, config, stream);
    if (is(128, 192, 4)) return launch_hopper_tile<T, 128, 192, 4, 1>(params, config, stream);
    if constexpr (kScaled<T>) {
        if (is(64, 64, 6)) return launch_hopper_tile<T, 64, 64, 6, 2>(params, config, stream);
        if (is(128, 64, 8)) return launch_hopper_tile<T, 128, 64, 8, 1>(params, config, stream);
    } else {
        if (is(64, 64, 12)) return launch_hopper_tile<T, 64, 64, 12, 1>(params, config, stream);
        if (is(64, 128, 8)) return launch_hopper_tile<T, 64, 128, 8, 1>(params, config, stream);
        if (is(128, 160, 4)) return launch_hopper_tile<T, 128, 160, 4, 1>(params, config, stream);
        if (is(128, 256, 3)) return launch_hopper_tile<T, 128, 256, 3, 1>(params, config, stream);
    }
    throw std::invalid_argument("no Hopper kernel has a tile of " + to_string(config));
}

}  // namespace gemm
