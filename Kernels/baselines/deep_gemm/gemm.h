// DeepGEMM's kernels behind plain functions. Tensors as the library expects them: a [m, k] and b
// [groups, n, k] with k contiguous, out [m, n] bf16. FP8 scales for sm_90a are fp32, of a [k / 128,
// m up to a multiple of 4], of b [groups, ceil(n / 128), k / 128]; for sm_100a they are UE8M0 (the
// exponent byte), four along k in an int32, of a [words, m up to a multiple of 4], of b [groups,
// words, n up to a multiple of 4]: words of 512 elements of k, of MXFP8 and MXFP4 of 128. Masked:
// a, out and the scales of a have an extra leading dimension of groups.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "Kernels/baselines/deep_gemm/config.h"

namespace deep_gemm_baseline {

struct Gemm {
    const void* a;
    const void* b;
    void* out;
    const void* a_scales;
    const void* b_scales;
    int* index;  // group of each row, or rows of each group
    Problem problem;
};

// Launches a config on a stream.
using Launch = void (*)(const Gemm& gemm, const Config& config, cudaStream_t stream);

// The compiled kernel of a config, or null if there is none.
Launch find_kernel(const Problem& problem, const Config& config, const Target& target);

// Its parts, if their architecture is built.
Launch find_fp8_dense_few_rows(const Problem& problem, const Config& config);
Launch find_fp8_dense_many_rows(const Problem& problem, const Config& config);
Launch find_fp8_grouped(const Problem& problem, const Config& config);
Launch find_bf16_dense_few_rows(const Problem& problem, const Config& config);
Launch find_bf16_dense_many_rows(const Problem& problem, const Config& config);
Launch find_bf16_grouped(const Problem& problem, const Config& config);
Launch find_sm100_fp8_dense(const Problem& problem, const Config& config);
Launch find_sm100_mx_dense(const Problem& problem, const Config& config);
Launch find_sm100_fp8_grouped(const Problem& problem, const Config& config, const Target& target);
Launch find_sm100_bf16_grouped(const Problem& problem, const Config& config, const Target& target);

// A kernel that was built on demand: machine code with nothing else in it, or PTX where the
// interpreter is the runtime. It stays loaded as long as this lives.
class Built {
  public:
    // The driver keeps a copy of the code.
    explicit Built(const void* code);
    ~Built();
    Built(const Built&) = delete;
    Built& operator=(const Built&) = delete;

    // The config and the target are those that it was built for.
    void launch(const Gemm& gemm, const Config& config, const Target& target,
                cudaStream_t stream) const;

  private:
    cudaLibrary_t library_ = nullptr;
    cudaKernel_t kernel_ = nullptr;
};

// Its parts, if their architecture is built.
void launch_built_sm90(cudaKernel_t kernel, const Gemm& gemm, const Config& config,
                       cudaStream_t stream);
void launch_built_sm100(cudaKernel_t kernel, const Gemm& gemm, const Config& config,
                        cudaStream_t stream);

// int32 words that the packed scales of a and of b take.
struct PackedWords {
    std::size_t a;
    std::size_t b;
};
PackedWords packed_words(const Problem& problem);

// Packs fp32 scales that are powers of two, laid out for sm_90a, into the layout for sm_100a.
void pack_scales(const Gemm& gemm, std::uint32_t* a, std::uint32_t* b, cudaStream_t stream);

// The same from UE8M0 scales in tiles (device/scale_tiles.h), as many of k in each row.
void pack_tiled_scales(const Gemm& gemm, std::uint32_t* a, std::uint32_t* b, cudaStream_t stream);

}  // namespace deep_gemm_baseline
