// Builds the tensor maps and launches Hopper's kernel.
#pragma once

#include <limits>
#include <type_traits>

#include "Kernels/device/launch.h"
#include "Kernels/device/require.h"
#include "Kernels/device/tensor_map.h"
#include "Kernels/mla/hopper/kernel.cuh"
#include "Kernels/mla/shelves.h"

namespace mla::hopper {

// A matrix of rows of 576; boxes are 64 elements by `box_rows`.
template <class T>
CUtensorMap row_map(const char* name, const void* address, std::int64_t rows, int box_rows) {
    device::require(rows <= std::numeric_limits<int>::max(), name, " has ", rows,
                    " rows; at most 2^31 - 1");
    device::BoxedTensor<2> tensor = {};
    tensor.type = std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                            : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    tensor.address = address;
    tensor.sizes[0] = kWidth;
    tensor.sizes[1] = static_cast<cuuint64_t>(rows);
    tensor.strides[0] = kWidth * sizeof(T);
    tensor.box[0] = 64;
    tensor.box[1] = static_cast<cuuint32_t>(box_rows);
    return device::tensor_map(tensor);
}

template <class T>
void launch(const Arguments& arguments, const Plan& plan, const Shape& sizes, cudaStream_t stream) {
    const Maps maps = {
        row_map<T>("q", arguments.q, std::int64_t{sizes.batch} * sizes.rows(), 64),
        row_map<T>("cache", arguments.cache, std::int64_t{sizes.pool_pages} * sizes.page_size,
                   kBoxTokens),
    };
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(plan.blocks()));
    shape.block = dim3(kThreads);
    shape.shared_bytes = sizeof(Storage);
    device::launch("mla_hopper", mla_kernel<T>, shape, stream, arguments, maps);
}

}  // namespace mla::hopper
