// Builds the tensor maps and launches Blackwell's kernel.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "Kernels/device/bounded_rows.cuh"
#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/device/tensor_map.h"
#include "Kernels/mla/blackwell/kernel.cuh"
#include "Kernels/mla/shelves.h"

namespace mla::blackwell {

// A matrix of rows of 576. A copy may end at any row, and what follows arrives as zeros: a page's
// unused tokens may hold NaN, which a weight of zero would not cancel.
// Boxes have 128 bytes of a row; codes of FP8 are read by threads, and have no swizzle.
template <class T, int kBytes>
CUtensorMap row_map(const void* address, int rows, int box_rows) {
    constexpr CUtensorMapDataType kType = kBytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                          : std::is_same_v<T, __half>
                                              ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                              : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    constexpr cuuint64_t kRowBytes = kWidth * kBytes;
    const auto [sizes, strides] = device::bounded_rows(rows, kRowBytes);
    return device::tensor_map<4>(
        {kType,
         address,
         {kWidth, sizes[0], sizes[1], sizes[2]},
         {strides[0], strides[1], strides[2]},
         {128 / kBytes, static_cast<cuuint32_t>(box_rows), 1, 1},
         kBytes == 1 ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B});
}

inline int checked_rows(const char* name, std::int64_t rows) {
    device::require(rows < std::numeric_limits<int>::max(), name, " has ", rows,
                    " rows; fewer than 2^31 - 1 are supported");
    return static_cast<int>(rows);
}

template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Plan& plan, const Shape& sizes, cudaStream_t stream) {
    const int q_rows = checked_rows("q", std::int64_t{sizes.batch} * sizes.rows());
    const int cache_rows =
        checked_rows("the cache", std::int64_t{sizes.pool_pages} * sizes.page_size);
    const Maps maps = {
        row_map<T, 2>(arguments.q, q_rows, kBlockRows),
        row_map<T, kCacheBytes>(arguments.cache, cache_rows,
                                std::min(sizes.page_size, kBlockTokens)),
    };
    device::Launch shape;
    shape.cluster_blocks = kBlocks;
    shape.grid = dim3(static_cast<unsigned>(plan.blocks()));
    shape.block = dim3(threads_of(kCacheBytes));
    shape.shared_bytes = kSharedBytes<kCacheBytes>;
    device::launch("mla_blackwell", mla_kernel<T, kCacheBytes>, shape, stream, arguments, maps);
}

}  // namespace mla::blackwell
