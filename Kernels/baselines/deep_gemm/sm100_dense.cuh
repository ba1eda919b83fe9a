// The dense kernels for a B200 that are compiled ahead of time; n and k are run-time values, as in
// the library.
#pragma once

#include "Kernels/baselines/deep_gemm/sm100.cuh"

namespace deep_gemm_baseline {

template <Operands kOperands, int kBlockM, int kBlockN, int kClusterM, int kClusterN, bool kSwaps>
constexpr Compiled dense() {
    return Sm100<kB200.multiprocessors, kOperands, Kind::kDense, 0, 0, 1, kBlockM, kBlockN,
                 kClusterM, kClusterN, kSwaps>::compiled();
}

// What the suites need: tile, cluster, whether it computes the transposed product.
template <Operands kOperands>
constexpr Compiled kDenseTable[] = {
    dense<kOperands, 32, 16, 1, 1, false>(),   dense<kOperands, 32, 224, 1, 1, false>(),
    dense<kOperands, 64, 16, 1, 1, false>(),   dense<kOperands, 64, 192, 1, 1, false>(),
    dense<kOperands, 64, 224, 1, 1, false>(),  dense<kOperands, 128, 16, 1, 1, false>(),
    dense<kOperands, 128, 16, 2, 1, false>(),  dense<kOperands, 128, 64, 2, 1, false>(),
    dense<kOperands, 128, 128, 2, 1, false>(), dense<kOperands, 128, 160, 2, 1, false>(),
    dense<kOperands, 128, 192, 1, 1, false>(), dense<kOperands, 128, 224, 1, 1, false>(),
    dense<kOperands, 128, 224, 2, 1, false>(), dense<kOperands, 128, 256, 2, 1, false>(),
    dense<kOperands, 16, 128, 1, 1, true>(),   dense<kOperands, 16, 128, 1, 2, true>(),
    dense<kOperands, 32, 128, 1, 2, true>(),   dense<kOperands, 64, 128, 1, 2, true>(),
    dense<kOperands, 176, 128, 1, 2, true>(),  dense<kOperands, 192, 128, 1, 1, true>(),
    dense<kOperands, 240, 128, 1, 2, true>(),
};

}  // namespace deep_gemm_baseline
