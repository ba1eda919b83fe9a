#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/attention/prefill.h"
#include "Kernels/attention/prefill_launch.h"
#include "Kernels/device/launch.h"

namespace attention {
namespace {

void require_aligned(const char* name, const void* pointer) {
    if (pointer == nullptr || reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0) {
        throw std::invalid_argument(std::string(name) + " must be 16-byte aligned and not null");
    }
}

void check(const Prefill& params, const Config& config) {
    require_aligned("q", params.q);
    require_aligned("k", params.k);
    require_aligned("v", params.v);
    require_aligned("out", params.out);
    require_aligned("tiles", params.tiles);
    require_aligned("counters", params.counters);
    if (!(params.scale > 0.0f)) {
        throw std::invalid_argument("scale is " + std::to_string(params.scale) +
                                    "; it must be positive");
    }
    const std::int64_t blocks = std::int64_t{params.tile_count} * params.heads;
    if (blocks < 1 || blocks > std::numeric_limits<int>::max()) {
        throw std::invalid_argument(std::to_string(params.tile_count) + " tiles of " +
                                    std::to_string(params.heads) +
                                    " heads; a grid has 1 to 2^31 - 1 blocks");
    }
    if (!(config == config_of(config.kernel, params.head_dim))) {
        throw std::invalid_argument("no kernel has tiles of " + describe(config));
    }
}

#ifdef ATTENTION_WITH_WGMMA
constexpr bool kHasWgmma = true;

void launch_wgmma(const Prefill& params, cudaStream_t stream) {
    params.type == ElementType::kBf16 ? launch_wgmma_bf16(params, stream)
                                      : launch_wgmma_f16(params, stream);
}
#else
constexpr bool kHasWgmma = false;

void launch_wgmma(const Prefill&, cudaStream_t) {
    throw std::invalid_argument("the wgmma kernel is not built; build for sm_90a");
}
#endif

}  // namespace

Machine current_machine() {
    int device = 0, major = 0, minor = 0;
    device::check(cudaGetDevice(&device), "cudaGetDevice");
    device::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                  "cudaDeviceGetAttribute");
    device::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
                  "cudaDeviceGetAttribute");
    return {device::multiprocessors(), kHasWgmma && major == 9 && minor == 0};
}

void launch(const Prefill& params, const Config& config, cudaStream_t stream) {
    check(params, config);
    if (config.kernel == Kernel::kWgmma) {
        launch_wgmma(params, stream);
    } else if (params.type == ElementType::kBf16) {
        launch_mma_bf16(params, stream);
    } else {
        launch_mma_f16(params, stream);
    }
}

}  // namespace attention
