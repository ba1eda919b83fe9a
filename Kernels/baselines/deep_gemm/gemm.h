// DeepGEMM's kernels behind plain functions. Tensors as the library wants them: a [m, k] and b
// [groups, n, k] with k contiguous, out [m, n] bf16; FP8 scales fp32, of a [k / 128, m up to a
// multiple of 4], of b [groups, ceil(n / 128), k / 128]. Masked: a, out and the scales of a have
// one more dimension of groups in front.
#pragma once

#include <cuda_runtime_api.h>

#include "Kernels/baselines/deep_gemm/config.h"

namespace deep_gemm_baseline {

struct Gemm {
    const void* a;
    const void* b;
    void* out;
    const float* a_scales;
    const float* b_scales;
    int* index;  // group of each row, or rows of each group
    Problem problem;
};

// Multiprocessors that the kernels were compiled for: the library has their number as a constant.
constexpr int kMultiprocessors = 132;

// Launches a config on a stream.
using Launch = void (*)(const Gemm& gemm, const Config& config, cudaStream_t stream);

// The compiled kernel of a config, or null where there is none.
Launch find_kernel(const Problem& problem, const Config& config);

// Its parts. They exist where sm_90a is built.
Launch find_fp8_dense_few_rows(const Problem& problem, const Config& config);
Launch find_fp8_dense_many_rows(const Problem& problem, const Config& config);
Launch find_fp8_grouped(const Problem& problem, const Config& config);
Launch find_bf16_dense_few_rows(const Problem& problem, const Config& config);
Launch find_bf16_dense_many_rows(const Problem& problem, const Config& config);
Launch find_bf16_grouped(const Problem& problem, const Config& config);

}  // namespace deep_gemm_baseline
