// One launcher per kernel and element type, each in a translation unit of its own.
#pragma once

#include "Kernels/attention/prefill.h"

namespace attention {

void launch_mma_bf16(const Prefill& params, cudaStream_t stream);
void launch_mma_f16(const Prefill& params, cudaStream_t stream);
void launch_wgmma_bf16(const Prefill& params, cudaStream_t stream);
void launch_wgmma_f16(const Prefill& params, cudaStream_t stream);

}  // namespace attention
