// Launches of DeepGEMM's kernels of scaled operands for sm_100a, whichever instantiation: their
// parameters are the same.
#pragma once

#include "Kernels/baselines/deep_gemm/kernel.cuh"

namespace deep_gemm_baseline {

// The index, m, n, k, what an epilogue takes, and maps of a, b, their scales and the result.
using Sm100Kernel = void (*)(int*, std::uint32_t, std::uint32_t, std::uint32_t,
                             deep_gemm::EpilogueOperatorArgs, CUtensorMap, CUtensorMap, CUtensorMap,
                             CUtensorMap, CUtensorMap);

// A map of operands, of which a line of the tile has 128 bytes.
inline CUtensorMap map_of_operand(Operands operands, const void* address, cuuint64_t k,
                                  cuuint64_t rows, int box_rows) {
    const cuuint64_t bits = element_bits(operands);
    const bool is_packed = operands == Operands::kMxfp4;
    return device::tensor_map<2>(
        {is_packed ? CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B : CU_TENSOR_MAP_DATA_TYPE_UINT8,
         address,
         {k, rows},
         {k * bits / 8},
         {static_cast<cuuint32_t>(1024 / bits), static_cast<cuuint32_t>(box_rows)},
         CU_TENSOR_MAP_SWIZZLE_128B});
}

inline void enqueue_sm100(Sm100Kernel kernel, const Gemm& gemm, const Config& config,
                          int multiprocessors, cudaStream_t stream) {
    const Problem& problem = gemm.problem;
    const Operands operands = problem.operands;
    const cuuint64_t k = problem.k;
    const cuuint64_t groups = problem.groups;
    // Four scales each.
    const int depth = 4 * scale_depth(operands);
    const cuuint64_t words = (k + depth - 1) / depth;
    const int words_of_stage = config.block_k > depth ? config.block_k / depth : 1;
    const cuuint64_t rooms = problem.kind == Kind::kMasked ? groups : 1;
    const auto up_to = [](int value, int multiple) {
        return (value + multiple - 1) / multiple * multiple;
    };
    const auto map_of_scales = [&](const void* scales, int rows, cuuint64_t count, int block) {
        const Matrix matrix = {CU_TENSOR_MAP_DATA_TYPE_INT32, 4, scales,
                               static_cast<cuuint64_t>(up_to(rows, 4)), words * count};
        return tensor_map(matrix, up_to(block, 128), words_of_stage, 0);
    };
    device::launch(
        "deep_gemm scaled", kernel, launch_shape(config, multiprocessors), stream, gemm.index,
        problem.m, problem.n, problem.k, deep_gemm::EpilogueOperatorArgs{},
        map_of_operand(operands, gemm.a, k, all_rows(problem), config.block_m / config.cluster_n),
        map_of_operand(operands, gemm.b, k, groups * problem.n, config.block_n / config.cluster_m),
        map_of_scales(gemm.a_scales, problem.m, rooms, config.block_m),
        map_of_scales(gemm.b_scales, problem.n, groups, config.block_n), map_of_out(gemm, config));
}

}  // namespace deep_gemm_baseline
