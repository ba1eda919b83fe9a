// The tensor map of packed sequences, for kernels that copy by TMA.
//
// A box of keys may reach past the end of its sequence. The map has the row dimension twice, as
// `row within bounds` and `row of the end`: rows past the end are out of bounds in the first and
// arrive as zeros, whatever the neighbour holds.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "Kernels/device/bounded_rows.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/device/tensor_map.h"

namespace prefill {

template <class T>
constexpr CUtensorMapDataType kMapType =
    std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

// A packed tensor [rows, heads, head_dim] with the row dimension twice: coordinate (d, head, i, j)
// is element d of head in row i + j - rows, and zero unless i is below `rows`. A box has
// `box_heads` heads of each of `box_rows` rows, one of them in the tensor or more: it begins before
// the tensor, where hardware reads what is wholly out of bounds.
template <class T>
CUtensorMap packed_map(const void* address, int rows, int heads, int head_dim, int box_rows,
                       int box_heads = 1) {
    const cuuint64_t head_bytes = static_cast<cuuint64_t>(head_dim) * sizeof(T);
    const cuuint64_t row_bytes = head_bytes * heads;
    const auto shifted = reinterpret_cast<std::uintptr_t>(address) - row_bytes * rows;
    return device::tensor_map<4>(
        {kMapType<T>,
         reinterpret_cast<const void*>(shifted),
         {static_cast<cuuint64_t>(head_dim), static_cast<cuuint64_t>(heads),
          static_cast<cuuint64_t>(rows), static_cast<cuuint64_t>(rows) + 1},
         {head_bytes, row_bytes, row_bytes},
         {64, static_cast<cuuint32_t>(box_heads), static_cast<cuuint32_t>(box_rows), 1}});
}

// Rows `first` to `first + box` of the sequence with `valid` rows from `start` on, as boxes of 64
// elements that are `box_bytes` apart, from `first_box` of a row on; `bound` is the number of rows
// of the tensor.
template <int kBoxes>
__device__ __forceinline__ void copy_boxes(unsigned char* to, int box_bytes, const CUtensorMap& map,
                                           std::uint64_t* barrier, int head, int bound, int start,
                                           int valid, int first, int first_box = 0) {
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
        device::ptx::load_box(to + box * box_bytes, map, barrier, (first_box + box) * 64, head,
                              bound - valid + first, start + valid);
    }
}

// The same tensor for boxes that may lie wholly past the end (bounded_rows.cuh).
template <class T>
CUtensorMap bounded_map(const void* address, int rows, int heads, int head_dim, int box_rows) {
    const cuuint64_t head_bytes = static_cast<cuuint64_t>(head_dim) * sizeof(T);
    const auto [sizes, strides] = device::bounded_rows(rows, head_bytes * heads);
    return device::tensor_map<5>({kMapType<T>,
                                  address,
                                  {static_cast<cuuint64_t>(head_dim),
                                   static_cast<cuuint64_t>(heads), sizes[0], sizes[1], sizes[2]},
                                  {head_bytes, strides[0], strides[1], strides[2]},
                                  {64, 1, static_cast<cuuint32_t>(box_rows), 1, 1}});
}

template <int kBoxes>
__device__ __forceinline__ void copy_bounded(unsigned char* to, int box_bytes,
                                             const CUtensorMap& map, std::uint64_t* barrier,
                                             int head, int start, int valid, int first,
                                             int first_box = 0) {
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
        device::ptx::load_box(to + box * box_bytes, map, barrier, (first_box + box) * 64, head,
                              device::kFarRow - valid + first, start + valid, device::kFarRow);
    }
}

}  // namespace prefill
