// Shared host code of the kernels: descriptors, launches, and tables of compiled kernels.
#pragma once

#include <deep_gemm/common/types.cuh>

#include "Kernels/baselines/deep_gemm/gemm.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/tensor_map.h"

namespace deep_gemm_baseline {

struct Matrix {
    CUtensorMapDataType type;
    int element_bytes;
    const void* address;
    cuuint64_t columns;  // contiguous
    cuuint64_t rows;
};

// A map of boxes; with a swizzle a box is as wide as the swizzle, and the kernel loads several.
inline CUtensorMap tensor_map(const Matrix& matrix, int box_columns, int box_rows, int swizzle) {
    const int columns = swizzle != 0 ? swizzle / matrix.element_bytes : box_columns;
    const CUtensorMapSwizzle mode = swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                    : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                    : swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                    : CU_TENSOR_MAP_SWIZZLE_NONE;
    return device::tensor_map<2>(
        {matrix.type,
         matrix.address,
         {matrix.columns, matrix.rows},
         {matrix.columns * matrix.element_bytes},
         {static_cast<cuuint32_t>(columns), static_cast<cuuint32_t>(box_rows)},
         mode});
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

// A compiled kernel: the constants of its template.
struct Compiled {
    Kind kind;
    int n;  // 0 if it is a run-time value, like k
    int k;
    int groups;  // for the masked layout only
    int block_m;
    int block_n;
    int stages;
    int cluster_m;
    int cluster_n;
    Launch launch;
    bool swaps = false;
};

template <int kCount>
Launch find(const Compiled (&table)[kCount], const Problem& problem, const Config& config) {
    for (const Compiled& entry : table) {
        const bool groups = problem.kind != Kind::kMasked || entry.groups == problem.groups;
        const bool sides = entry.n == 0 || (entry.n == problem.n && entry.k == problem.k);
        if (entry.kind == problem.kind && groups && sides && entry.block_m == config.block_m &&
            entry.block_n == config.block_n && entry.stages == config.stages &&
            entry.cluster_m == config.cluster_m && entry.cluster_n == config.cluster_n &&
            entry.swaps == config.swaps) {
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
