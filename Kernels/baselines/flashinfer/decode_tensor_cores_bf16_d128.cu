#include "Kernels/baselines/flashinfer/decode_tensor_cores.cuh"

namespace fi {

std::unique_ptr<Planned> plan_decode_tensor_cores_bf16_d128(const PagedDecode& call) {
    return std::make_unique<DecodeOnTensorCores<nv_bfloat16, 128>>(call);
}

}  // namespace fi
