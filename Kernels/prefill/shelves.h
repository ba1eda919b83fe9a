// The launchers of each shelf, instantiated per element type by its instance.cu.
#pragma once

#include "Kernels/prefill/prefill.h"

namespace prefill {

namespace portable {
template <class T>
void launch(const Prefill& params, const Config& config, cudaStream_t stream);
}

namespace hopper {
template <class T>
void launch(const Prefill& params, const Config& config, cudaStream_t stream);
}

}  // namespace prefill
