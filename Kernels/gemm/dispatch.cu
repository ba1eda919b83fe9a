// The host side of every launch: checks, choice of a kernel, dispatch over types.
#include <stdexcept>
#include <string>

#include "Kernels/device/launch.h"
#include "Kernels/gemm/gemm.h"
#include "Kernels/gemm/hopper_launch.h"
#include "Kernels/gemm/portable_launch.h"

namespace gemm {
namespace {

void require_aligned(const char* name, const void* pointer) {
    if (pointer == nullptr || reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0) {
        throw std::invalid_argument(std::string(name) + " is null or not aligned to 16 bytes");
    }
}

Machine machine() { return {device::multiprocessors()}; }

// What the current device can run best, of what was built.
Kernel best_kernel() {
#ifdef GEMM_WITH_HOPPER
    int device = 0, major = 0;
    device::check(cudaGetDevice(&device), "cudaGetDevice");
    device::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                  "cudaDeviceGetAttribute");
    if (major == 9) return Kernel::kHopper;
#endif
    return Kernel::kPortable;
}

}  // namespace

void validate(const Gemm& params) {
    validate(params.shape);
    require_aligned("a", params.a);
    require_aligned("b", params.b);
    require_aligned("out", params.out);
    if (params.shape.type == ElementType::kFp8) {
        require_aligned("a_scales", params.a_scales);
        require_aligned("b_scales", params.b_scales);
    }
    if (params.shape.layout != Layout::kDense) require_aligned("index", params.index);
}

Config portable_config_of(const Shape& shape) {
    return choose(shape, machine(), Kernel::kPortable);
}

void launch_portable(const Gemm& params, const Config& config, cudaStream_t stream) {
    validate(params);
    switch (params.shape.type) {
        case ElementType::kBf16:
            return launch_portable_bf16(params, config, stream);
        case ElementType::kF16:
            return launch_portable_f16(params, config, stream);
        case ElementType::kFp8:
            return launch_portable_fp8(params, config, stream);
    }
}

Config config_of(const Shape& shape) { return choose(shape, machine(), best_kernel()); }

void launch(const Gemm& params, const Config& config, cudaStream_t stream) {
    if (config.kernel == Kernel::kPortable) return launch_portable(params, config, stream);
    validate(params);
#ifdef GEMM_WITH_HOPPER
    switch (params.shape.type) {
        case ElementType::kBf16:
            return launch_hopper_bf16(params, config, stream);
        case ElementType::kF16:
            return launch_hopper_f16(params, config, stream);
        case ElementType::kFp8:
            return launch_hopper_fp8(params, config, stream);
    }
#else
    throw std::invalid_argument("Hopper's kernels are not built; build with --config=sm90a");
#endif
}

}  // namespace gemm
