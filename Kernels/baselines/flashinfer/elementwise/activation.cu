#include <algorithm>
#include <cmath>
#include <flashinfer/activation.cuh>

#include "Kernels/baselines/flashinfer/elementwise/elementwise.h"
#include "Kernels/device/launch.h"

namespace fi {
namespace {

// The library's Python package generates these three in the source it compiles at run time; the
// arithmetic here is the same.
__device__ __forceinline__ float silu(const float& x) { return x / (1.0f + __expf(-x)); }
__device__ __forceinline__ float gelu(const float& x) {
    constexpr float kRootOfHalf = 0.70710678118654752f;
    return x * 0.5f * (1.0f + ::erf(x * kRootOfHalf));
}
__device__ __forceinline__ float gelu_tanh(const float& x) {
    const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
    return x * (0.5f * (1.0f + flashinfer::math::tanh(inner)));
}

template <float (*kUnit)(const float&)>
void launch_unit(const ActAndMul& params, cudaStream_t stream) {
    using T = nv_bfloat16;
    constexpr int kPer = 16 / sizeof(T);
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(params.rows));
    shape.block = dim3(static_cast<unsigned>(std::min(params.columns / kPer, 1024)));
    // As the library does on devices that support it.
    shape.overlaps_previous = true;
    device::launch("flashinfer act_and_mul", flashinfer::activation::act_and_mul_kernel<T, kUnit>,
                   shape, stream, static_cast<T*>(params.out), static_cast<const T*>(params.input),
                   params.columns);
}

}  // namespace

void launch(const ActAndMul& params, cudaStream_t stream) {
    switch (params.gate) {
        case Gate::kSilu:
            return launch_unit<silu>(params, stream);
        case Gate::kGeluTanh:
            return launch_unit<gelu_tanh>(params, stream);
        case Gate::kGelu:
            return launch_unit<gelu>(params, stream);
    }
    throw std::invalid_argument("unknown gate");
}

}  // namespace fi
