// One function a type, so that types compile side by side. They exist where sm_90a is built.
#pragma once

#include "Kernels/gemm/gemm.h"

namespace gemm {

void launch_hopper_bf16(const Gemm& params, const Config& config, cudaStream_t stream);
void launch_hopper_f16(const Gemm& params, const Config& config, cudaStream_t stream);
void launch_hopper_fp8(const Gemm& params, const Config& config, cudaStream_t stream);

}  // namespace gemm
