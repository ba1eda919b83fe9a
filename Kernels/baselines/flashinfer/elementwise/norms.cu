#include <flashinfer/norm.cuh>
#include <stdexcept>

#include "Kernels/baselines/flashinfer/elementwise/norms.h"
#include "Kernels/device/launch.h"

namespace fi {
namespace {

// The library uses it on every device that supports it, which is all we build for.
constexpr bool kOverlapsPrevious = true;

template <class T>
void launch_typed(const Norm& p, cudaStream_t stream) {
    T* const x = static_cast<T*>(p.x);
    T* const weight = static_cast<T*>(p.weight);
    T* const out = static_cast<T*>(p.out);
    switch (p.op) {
        case NormOp::RmsNorm:
            return device::check(
                flashinfer::norm::RMSNorm(x, weight, out, p.rows, p.columns, p.columns, p.columns,
                                          p.epsilon, kOverlapsPrevious, stream),
                "flashinfer RMSNorm");
        case NormOp::FusedAddRmsNorm:
            return device::check(flashinfer::norm::FusedAddRMSNorm(
                                     x, static_cast<T*>(p.residual), weight, p.rows, p.columns,
                                     p.columns, p.columns, p.epsilon, kOverlapsPrevious, stream),
                                 "flashinfer FusedAddRMSNorm");
        case NormOp::LayerNorm:
            break;
    }
    throw std::invalid_argument("unknown operation");
}

void launch_layernorm(const Norm& p, cudaStream_t stream) {
    using T = nv_bfloat16;
    if (p.type != Type::kBf16) {
        throw std::invalid_argument("FlashInfer's LayerNorm supports only bf16 activations");
    }
    device::check(flashinfer::norm::LayerNorm(static_cast<T*>(p.x), static_cast<float*>(p.weight),
                                              static_cast<float*>(p.bias), static_cast<T*>(p.out),
                                              p.rows, p.columns, p.epsilon, stream),
                  "flashinfer LayerNorm");
    // The library does not check this launch itself.
    device::check(cudaGetLastError(), "launch of flashinfer LayerNorm");
}

}  // namespace

void launch(const Norm& params, cudaStream_t stream) {
    if (params.op == NormOp::LayerNorm) return launch_layernorm(params, stream);
    if (params.type == Type::kBf16) return launch_typed<nv_bfloat16>(params, stream);
    launch_typed<half>(params, stream);
}

}  // namespace fi
