// Dense kernels for a B200 that are compiled ahead of time; n and k are run-time values, as in the
// library.
#pragma once

#include "Kernels/baselines/deep_gemm/sm100.cuh"

namespace deep_gemm_baseline {

// Tile, cluster, whether it computes the transposed product.
template <Operands kOperands, int kBlockM, int kBlockN, int kClusterM, int kClusterN, bool kSwaps>
constexpr Compiled dense() {
    return Sm100<kB200.multiprocessors, kOperands, Kind::kDense, 0, 0, 1, kBlockM, kBlockN,
                 kClusterM, kClusterN, kSwaps>::compiled();
}

}  // namespace deep_gemm_baseline
