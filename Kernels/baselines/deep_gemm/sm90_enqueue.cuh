// Launches of DeepGEMM's kernels for sm_90a, whichever instantiation: their parameters are the
// same.
#pragma once

#include "Kernels/baselines/deep_gemm/kernel.cuh"

namespace deep_gemm_baseline {

// The index, m, n, k, and maps of a, b and the result.
using Bf16Kernel = void (*)(int*, std::uint32_t, std::uint32_t, std::uint32_t, CUtensorMap,
                            CUtensorMap, CUtensorMap);
// The same after the scales of b, and with a map of the scales of a.
using Fp8Kernel = void (*)(float*, int*, std::uint32_t, std::uint32_t, std::uint32_t, CUtensorMap,
                           CUtensorMap, CUtensorMap, CUtensorMap);

inline void enqueue_bf16(Bf16Kernel kernel, const Gemm& gemm, const Config& config,
                         cudaStream_t stream) {
    const Problem& problem = gemm.problem;
    const cuuint64_t k = problem.k;
    const Matrix a = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, gemm.a, k, all_rows(problem)};
    const Matrix b = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, gemm.b, k,
                      static_cast<cuuint64_t>(problem.groups) * problem.n};
    device::launch("deep_gemm bf16", kernel, launch_shape(config, kSm90.multiprocessors), stream,
                   gemm.index, problem.m, problem.n, problem.k,
                   tensor_map(a, 64, config.block_m, 128), tensor_map(b, 64, config.block_n, 128),
                   map_of_out(gemm, config));
}

inline void enqueue_fp8(Fp8Kernel kernel, const Gemm& gemm, const Config& config,
                        cudaStream_t stream) {
    const Problem& problem = gemm.problem;
    const cuuint64_t k = problem.k;
    const cuuint64_t groups = problem.groups;
    const cuuint64_t scale_rows = (static_cast<cuuint64_t>(problem.m) + 3) / 4 * 4;
    const cuuint64_t scale_groups = problem.kind == Kind::kMasked ? groups : 1;
    const Matrix a = {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, gemm.a, k, all_rows(problem)};
    const Matrix b = {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, gemm.b, k, groups * problem.n};
    const Matrix scales = {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, gemm.a_scales, scale_rows,
                           k / 128 * scale_groups};
    device::launch("deep_gemm fp8", kernel, launch_shape(config, kSm90.multiprocessors), stream,
                   static_cast<float*>(const_cast<void*>(gemm.b_scales)), gemm.index, problem.m,
                   problem.n, problem.k, tensor_map(a, 128, config.block_m, 128),
                   tensor_map(b, 128, config.block_n, 128), map_of_out(gemm, config),
                   tensor_map(scales, config.block_m, 1, 0));
}

}  // namespace deep_gemm_baseline
