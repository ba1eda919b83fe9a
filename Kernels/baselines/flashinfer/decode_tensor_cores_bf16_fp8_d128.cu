#include <cuda_fp8.h>

#include "Kernels/baselines/flashinfer/decode_tensor_cores.cuh"

namespace fi {

std::unique_ptr<Planned> plan_decode_tensor_cores_bf16_fp8_d128(const PagedDecode& call) {
    return std::make_unique<DecodeOnTensorCores<nv_bfloat16, 128, __nv_fp8_e4m3>>(call);
}

}  // namespace fi
