// What the kernels have in common on the host: descriptors, launches, and tables of what was
// compiled.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <deep_gemm/common/types.cuh>
#include <stdexcept>
#include <string>

#include "Kernels/baselines/deep_gemm/gemm.h"
#include "Kernels/device/launch.h"

namespace deep_gemm_baseline {

using TensorMapEncoder = decltype(&cuTensorMapEncodeTiled);

// The driver's function, found through the runtime so that nothing links against the driver.
inline TensorMapEncoder tensor_map_encoder() {
    static const TensorMapEncoder encoder = [] {
        void* found = nullptr;
        cudaDriverEntryPointQueryResult result;
        device::check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                       cudaEnableDefault, &result),
                      "cudaGetDriverEntryPointByVersion");
        if (result != cudaDriverEntryPointSuccess) {
            throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
        }
        return reinterpret_cast<TensorMapEncoder>(found);
    }();
    return encoder;
}

struct Matrix {
    CUtensorMapDataType type;
    int element_bytes;
    const void* address;
    cuuint64_t columns;  // contiguous
    cuuint64_t rows;
};

// A map of boxes; with a swizzle a box is as wide as it, and the kernel asks for several.
inline CUtensorMap tensor_map(const Matrix& matrix, int box_columns, int box_rows, int swizzle) {
    const cuuint64_t sizes[2] = {matrix.columns, matrix.rows};
    const cuuint64_t strides[1] = {matrix.columns * matrix.element_bytes};
    const cuuint32_t box[2] = {
        static_cast<cuuint32_t>(swizzle != 0 ? swizzle / matrix.element_bytes : box_columns),
        static_cast<cuuint32_t>(box_rows)};
    const cuuint32_t steps[2] = {1, 1};
    const CUtensorMapSwizzle mode = swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                    : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                    : swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                    : CU_TENSOR_MAP_SWIZZLE_NONE;
    CUtensorMap map;
    const CUresult result =
        tensor_map_encoder()(&map, matrix.type, 2, const_cast<void*>(matrix.address), sizes,
                             strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, mode,
                             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) {
        throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(result));
    }
    return map;
}

// Rows of a and out in memory.
inline cuuint64_t all_rows(const Problem& problem) {
    const cuuint64_t groups = problem.kind == Kind::kMasked ? problem.groups : 1;
    return groups * problem.m;
}

inline CUtensorMap map_of_out(const Gemm& gemm, const Config& config) {
    const Problem& problem = gemm.problem;
    const Matrix out = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, gemm.out,
                        static_cast<cuuint64_t>(problem.n), all_rows(problem)};
    return tensor_map(out, config.block_n, config.store_rows, config.swizzle_d_bytes);
}

inline device::Launch launch_shape(const Config& config, int multiprocessors) {
    device::Launch launch;
    launch.grid = dim3(static_cast<unsigned>(multiprocessors));
    launch.block = dim3(static_cast<unsigned>(config.threads));
    launch.cluster_blocks = config.cluster_m * config.cluster_n;
    launch.shared_bytes = static_cast<std::size_t>(config.shared_bytes);
    return launch;
}

// A compiled kernel: what its template has as constants.
struct Compiled {
    Kind kind;
    int n;  // 0 where it serves all, like k
    int k;
    int groups;  // of the masked layout; the others do not use it
    int block_m;
    int block_n;
    int stages;
    int cluster_m;
    int cluster_n;
    Launch launch;
};

template <int kCount>
Launch find(const Compiled (&table)[kCount], const Problem& problem, const Config& config) {
    for (const Compiled& entry : table) {
        const bool groups = problem.kind != Kind::kMasked || entry.groups == problem.groups;
        const bool sides = entry.n == 0 || (entry.n == problem.n && entry.k == problem.k);
        if (entry.kind == problem.kind && groups && sides && entry.block_m == config.block_m &&
            entry.block_n == config.block_n && entry.stages == config.stages &&
            entry.cluster_m == config.cluster_m && entry.cluster_n == config.cluster_n) {
            return entry.launch;
        }
    }
    return nullptr;
}

constexpr deep_gemm::GemmType kernel_type(Kind kind) {
    return kind == Kind::kDense        ? deep_gemm::GemmType::Normal
           : kind == Kind::kContiguous ? deep_gemm::GemmType::MGroupedContiguous
                                       : deep_gemm::GemmType::MGroupedMasked;
}

constexpr int swizzle_of_out(int block_n) {
    return block_n * 2 % 128 == 0 ? 128 : block_n * 2 % 64 == 0 ? 64 : 32;
}

}  // namespace deep_gemm_baseline
