// Launches Hopper's kernel with the tiles that config.cc chooses from.
#pragma once

#include <stdexcept>

#include "Kernels/device/launch.h"
#include "Kernels/device/tensor_map.h"
#include "Kernels/gemm/hopper.cuh"
#include "Kernels/gemm/hopper_launch.h"

namespace gemm {

// An operand of `groups` matrices of `rows` x k, in boxes of `box_rows` rows by 128 bytes of k.
template <class T>
CUtensorMap operand_map(const void* address, int k, int rows, int groups, int box_rows) {
    constexpr CUtensorMapDataType kType = kScaled<T> ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                          : std::is_same_v<T, __half>
                                              ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                              : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const cuuint64_t line_bytes = static_cast<cuuint64_t>(k) * sizeof(T);
    return device::tensor_map<3>({kType,
                                  address,
                                  {static_cast<cuuint64_t>(k), static_cast<cuuint64_t>(rows),
                                   static_cast<cuuint64_t>(groups)},
                                  {line_bytes, line_bytes * rows},
                                  {128 / sizeof(T), static_cast<cuuint32_t>(box_rows), 1}});
}

template <class T, int kRows, int kColumns, int kStages, int kBlocks>
void launch_hopper_tile(const Gemm& params, const Config& config, cudaStream_t stream) {
    using Traits = HopperTraits<T, kRows, kColumns, kStages, kBlocks>;
    const Shape& shape = params.shape;
    const int a_groups = shape.layout == Layout::kMasked ? shape.groups : 1;
    HopperOperands operands;
    operands.a = operand_map<T>(params.a, shape.k, shape.rows, a_groups, kRows);
    operands.b = operand_map<T>(params.b, shape.k, shape.n, shape.groups, kColumns);
    device::Launch launch;
    launch.grid = dim3(static_cast<unsigned>(config.blocks));
    launch.block = dim3(Traits::kThreads);
    launch.shared_bytes = Traits::kSharedBytes;
    device::launch("gemm_hopper", hopper_kernel<Traits>, launch, stream, params, operands);
}

// The stages are those of hopper_tiles in config.cc.
template <class T>
void launch_hopper_type(const Gemm& params, const Config& config, cudaStream_t stream) {
    const auto is = [&](int rows, int columns, int stages) {
        return config.tile_rows == rows && config.tile_columns == columns &&
               config.stages == stages;
    };
    if (is(32, 32, 20)) return launch_hopper_tile<T, 32, 32, 20, 1>(params, config, stream);
    if (is(32, 64, 7)) return launch_hopper_tile<T, 32, 64, 7, 2>(params, config, stream);
    if (is(32, 128, 4)) return launch_hopper_tile<T, 32, 128, 4, 2>(params, config, stream);
    if (is(64, 128, 4)) return launch_hopper_tile<T, 64, 128, 4, 2>(params, config, stream);
    if (is(128, 128, 6)) return launch_hopper_tile<T, 128, 128, 6, 1>(params, config, stream);
    if constexpr (!kScaled<T>) {
        if (is(128, 256, 4)) return launch_hopper_tile<T, 128, 256, 4, 1>(params, config, stream);
    }
    throw std::invalid_argument("no Hopper kernel has a tile of " + to_string(config));
}

}  // namespace gemm
