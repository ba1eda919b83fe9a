// The host side of every launch: checks, then the chosen architecture's kernel.
#include "Kernels/device/built.h"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/require.h"
#include "Kernels/gemm/element.cuh"
#include "Kernels/gemm/gemm.h"

namespace gemm {

// Instantiated per element type by the shelf's instance.cu.
namespace portable {
template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream);
}

namespace hopper {
template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream);
}

namespace blackwell {
template <class T>
void launch(const Gemm& params, const Config& config, cudaStream_t stream);
}

void validate(const Gemm& params) {
    using device::require_aligned;
    validate(params.shape);
    require_aligned("a", params.a);
    require_aligned("b", params.b);
    require_aligned("out", params.out);
    if (params.shape.scaled() || params.shape.block_scaled()) {
        require_aligned("a_scales", params.a_scales);
        require_aligned("b_scales", params.b_scales);
    }
    if (params.shape.dtype == Dtype::Nvfp4) require_aligned("tensor_scale", params.tensor_scale);
    if (params.shape.layout != Layout::kDense) require_aligned("index", params.index);
}

namespace {

template <class T>
void launch_type(const Gemm& params, const Config& config, cudaStream_t stream) {
    if constexpr (device::built(Arch::kBlackwell)) {
        if (config.arch == Arch::kBlackwell) return blackwell::launch<T>(params, config, stream);
    }
    if constexpr (!kBlockScaled<T>) {
        if constexpr (device::built(Arch::kHopper)) {
            if (config.arch == Arch::kHopper) return hopper::launch<T>(params, config, stream);
        }
        if (config.arch == Arch::kPortable) return portable::launch<T>(params, config, stream);
    }
    device::refuse("gemm of " + std::string(device::name_of(params.shape.dtype)) + " for " +
                   device::to_string(config.arch) + " is not built");
}

}  // namespace

void launch(const Gemm& params, const Config& config, cudaStream_t stream) {
    validate(params);
    device::dispatch<__nv_bfloat16, __half, __nv_fp8_e4m3, Fp8Ue8m0, Mxfp8, Nvfp4, Mxfp4>(
        params.shape.dtype,
        [&](auto element) { launch_type<decltype(element)>(params, config, stream); });
}

}  // namespace gemm
