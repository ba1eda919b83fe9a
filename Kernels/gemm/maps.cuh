// Tensor maps of the operands and the result, for kernels that copy by TMA.
#pragma once

#include <type_traits>

#include "Kernels/device/scale_tiles.h"
#include "Kernels/device/tensor_map.h"
#include "Kernels/gemm/element.cuh"

namespace gemm {

template <class T>
constexpr CUtensorMapDataType kMapType =
    sizeof(T) == 1              ? CU_TENSOR_MAP_DATA_TYPE_UINT8
    : std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

// An operand of `groups` matrices of `rows` x k, in boxes of `box_rows` rows by 128 bytes of k.
template <class T>
CUtensorMap operand_map(const void* address, int k, int rows, int groups, int box_rows) {
    const cuuint64_t elements = static_cast<cuuint64_t>(k) / kPacking<T>;
    const cuuint64_t line_bytes = elements * sizeof(T);
    return device::tensor_map<3>(
        {kMapType<T>,
         address,
         {elements, static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(groups)},
         {line_bytes, line_bytes * rows},
         {128 / sizeof(T), static_cast<cuuint32_t>(box_rows), 1}});
}

// Tiles of scales of `rows` rows in each of `groups` matrices, in boxes of some tiles along k and
// along the rows.
template <class T>
CUtensorMap scale_map(const void* address, int k, int rows, int groups, int box_tiles,
                      int box_tiles_down) {
    constexpr cuuint64_t kBytes = device::kScaleTileBytes;
    const cuuint64_t across = device::scale_tiles_across(k / kScaleGroup<T>);
    const cuuint64_t down = (rows + device::kScaleTileRows - 1) / device::kScaleTileRows;
    return device::tensor_map<3>(
        {CU_TENSOR_MAP_DATA_TYPE_UINT32,
         address,
         {kBytes / 4, across, down * groups},
         {kBytes, kBytes * across},
         {kBytes / 4, static_cast<cuuint32_t>(box_tiles), static_cast<cuuint32_t>(box_tiles_down)},
         CU_TENSOR_MAP_SWIZZLE_NONE});
}

// The result of products of T, in boxes of 16, 32 or 64 columns.
template <class T>
CUtensorMap out_map(const void* address, int n, int rows, int box_columns, int box_rows) {
    return device::tensor_map<2>(
        {kMapType<OutOf<T>>,
         address,
         {static_cast<cuuint64_t>(n), static_cast<cuuint64_t>(rows)},
         {static_cast<cuuint64_t>(n) * sizeof(OutOf<T>)},
         {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)},
         box_columns == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
         : box_columns == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                             : CU_TENSOR_MAP_SWIZZLE_32B});
}

}  // namespace gemm
