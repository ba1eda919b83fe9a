#include <limits>

#include "Kernels/device/built.h"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/require.h"
#include "Kernels/prefill/prefill.h"

namespace prefill {

// Instantiated per element type by the shelf's instance.cu.
namespace portable {
template <class T>
void launch(const Prefill& params, const Config& config, cudaStream_t stream);
}

namespace hopper {
template <class T>
void launch(const Prefill& params, const Config& config, cudaStream_t stream);
}

namespace blackwell {
template <class T>
void launch(const Prefill& params, const Config& config, cudaStream_t stream);
}

void launch_merge(const Prefill& params, cudaStream_t stream);

namespace {

void check(const Prefill& params) {
    using device::require_aligned;
    require_aligned("q", params.q);
    require_aligned("k", params.k);
    require_aligned("v", params.v);
    require_aligned("out", params.out);
    require_aligned("tiles", params.tiles);
    require_aligned("counters", params.counters);
    device::require(params.scale > 0.0f, "scale is ", params.scale, "; it must be positive");
    const std::int64_t blocks = std::int64_t{params.tile_count} * params.heads;
    device::require(blocks >= 1 && blocks <= std::numeric_limits<int>::max(), params.tile_count,
                    " tiles of ", params.heads, " heads; a grid has 1 to 2^31 - 1 blocks");
}

}  // namespace

void launch(const Prefill& params, const Config& config, cudaStream_t stream) {
    check(params);
    device::dispatch<__half, __nv_bfloat16>(params.dtype, [&](auto element) {
        using T = decltype(element);
        if constexpr (device::built(Arch::kHopper)) {
            if (config.arch == Arch::kHopper) return hopper::launch<T>(params, config, stream);
        }
        if constexpr (device::built(Arch::kBlackwell)) {
            if (config.arch == Arch::kBlackwell) {
                return blackwell::launch<T>(params, config, stream);
            }
        }
        device::require(config.arch == Arch::kPortable, "prefill for ",
                        device::to_string(config.arch), " is not built");
        portable::launch<T>(params, config, stream);
    });
    if (params.parts.merge_count > 0) launch_merge(params, stream);
}

}  // namespace prefill
