// The launchers of each shelf, instantiated per element type by its instance.cu.
#pragma once

#include "Kernels/gemm/gemm.h"

namespace gemm {

namespace portable {
template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream);
}

namespace hopper {
template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream);
}

}  // namespace gemm
