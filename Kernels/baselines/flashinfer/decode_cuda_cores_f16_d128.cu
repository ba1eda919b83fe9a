#include "Kernels/baselines/flashinfer/decode_cuda_cores.cuh"

namespace fi {

std::unique_ptr<Planned> plan_decode_cuda_cores_f16_d128(const PagedDecode& call) {
    return std::make_unique<DecodeOnCudaCores<half, 128>>(call);
}

}  // namespace fi
