#include <flashinfer/norm.cuh>

#include "Kernels/baselines/flashinfer/norms.h"
#include "Kernels/device/launch.h"

namespace fi {
namespace {

// The library uses it on every device that supports it, which is all we build for.
constexpr bool kOverlapsPrevious = true;

template <class T>
T* elements(const void* address) {
    return static_cast<T*>(const_cast<void*>(address));
}

template <class T>
cudaError_t rmsnorm(const RmsNorm& p, cudaStream_t stream) {
    return flashinfer::norm::RMSNorm(elements<T>(p.x), elements<T>(p.weight), elements<T>(p.out),
                                     p.rows, p.columns, p.columns, p.columns, p.epsilon,
                                     kOverlapsPrevious, stream);
}

template <class T>
cudaError_t fused_add_rmsnorm(const FusedAddRmsNorm& p, cudaStream_t stream) {
    return flashinfer::norm::FusedAddRMSNorm(elements<T>(p.x), elements<T>(p.residual),
                                             elements<T>(p.weight), p.rows, p.columns, p.columns,
                                             p.columns, p.epsilon, kOverlapsPrevious, stream);
}

}  // namespace

void launch(const RmsNorm& params, cudaStream_t stream) {
    device::check(params.type == Type::kBf16 ? rmsnorm<nv_bfloat16>(params, stream)
                                             : rmsnorm<half>(params, stream),
                  "flashinfer RMSNorm");
}

void launch(const FusedAddRmsNorm& params, cudaStream_t stream) {
    device::check(params.type == Type::kBf16 ? fused_add_rmsnorm<nv_bfloat16>(params, stream)
                                             : fused_add_rmsnorm<half>(params, stream),
                  "flashinfer FusedAddRMSNorm");
}

void launch(const LayerNorm& params, cudaStream_t stream) {
    using T = nv_bfloat16;
    device::check(flashinfer::norm::LayerNorm(elements<T>(params.x), elements<float>(params.weight),
                                              elements<float>(params.bias), elements<T>(params.out),
                                              params.rows, params.columns, params.epsilon, stream),
                  "flashinfer LayerNorm");
    // The library does not check this launch itself.
    device::check(cudaGetLastError(), "launch of flashinfer LayerNorm");
}

}  // namespace fi
