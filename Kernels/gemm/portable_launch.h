// One function a type, so that types compile side by side.
#pragma once

#include "Kernels/gemm/gemm.h"

namespace gemm {

void launch_portable_bf16(const Gemm& params, const Config& config, cudaStream_t stream);
void launch_portable_f16(const Gemm& params, const Config& config, cudaStream_t stream);
void launch_portable_fp8(const Gemm& params, const Config& config, cudaStream_t stream);

}  // namespace gemm
