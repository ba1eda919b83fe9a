#include "Kernels/device/built.h"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/require.h"
#include "Kernels/mla/shelves.h"

namespace mla {

Workspace carve(device::Carver& carver, const Plan& plan) {
    const std::size_t rows =
        static_cast<std::size_t>(plan.slots) * plan.config.row_blocks * plan.config.rows;
    Workspace workspace = {};
    workspace.segments = carver.take<Segment>(plan.segments.size());
    workspace.share_begin = carver.take<std::int32_t>(plan.share_begin.size());
    workspace.first_segments = carver.take<Segment>(plan.first_segments.size());
    workspace.merges = carver.take<Merge>(plan.merges.size());
    carver.end_tables();
    workspace.partials = carver.take<float>(rows * kLatent);
    workspace.maxima = carver.take<float2>(rows);
    return workspace;
}

void launch(const MlaDecode& params, const Plan& plan, const Workspace& workspace,
            cudaStream_t stream) {
    using device::require_aligned;
    require_aligned("q", params.q);
    require_aligned("cache", params.cache);
    require_aligned("out", params.out);
    const Shape& shape = params.shape;
    Arguments arguments = {};
    arguments.q = params.q;
    arguments.cache = params.cache;
    arguments.pages = params.pages;
    arguments.out = params.out;
    arguments.workspace = workspace;
    arguments.q_len = shape.q_len;
    arguments.heads = shape.heads;
    arguments.rows = shape.rows();
    arguments.row_blocks = plan.config.row_blocks;
    arguments.page_shift = shape.cache().page_shift();
    constexpr float kLog2E = 1.4426950408889634f;
    arguments.scale_log2 = params.scale * params.cache_scale * kLog2E;
    arguments.value_scale = params.cache_scale;
    device::dispatch<__half, __nv_bfloat16>(params.dtype, [&](auto element) {
        using T = decltype(element);
        if (plan.config.arch != Arch::kPortable) {
            const float scale = params.scale * params.cache_scale;
            device::require(scale > 0.0f, "scale is ", scale, "; it must be positive");
        }
        if constexpr (device::built(Arch::kHopper)) {
            if (plan.config.arch == Arch::kHopper) {
                return hopper::launch<T>(arguments, plan, shape, stream);
            }
        }
        if constexpr (device::built(Arch::kBlackwell)) {
            if (plan.config.arch == Arch::kBlackwell) {
                if (shape.cache_bytes == 1) {
                    return blackwell::launch<T, 1>(arguments, plan, shape, stream);
                }
                return blackwell::launch<T, 2>(arguments, plan, shape, stream);
            }
        }
        device::require(plan.config.arch == Arch::kPortable, "latent attention for ",
                        device::to_string(plan.config.arch), " is not built");
        if (shape.cache_bytes == 1) return portable::launch<T, 1>(arguments, plan, stream);
        portable::launch<T, 2>(arguments, plan, stream);
    });
    if (!plan.merges.empty()) launch_merge(arguments, plan, params.dtype, stream);
}

}  // namespace mla
