#include "Kernels/decode/arguments.h"
#include "Kernels/device/built.h"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/require.h"

namespace decode {
namespace {

template <class T, int kCacheBytes>
void launch_on(const Arguments& arguments, const Decode& params, const Plan& plan,
               cudaStream_t stream) {
    const Arch arch = plan.config.arch;
    if constexpr (device::built(Arch::kBlackwell)) {
        if (arch == Arch::kBlackwell) {
            return blackwell::launch<T, kCacheBytes>(arguments, params.shape, params.head_major,
                                                     plan, stream);
        }
    }
    device::require(arch == Arch::kPortable, "decode for ", device::to_string(arch),
                    " is not built");
    portable::launch<T, kCacheBytes>(arguments, params.shape, plan, stream);
}

}  // namespace

Workspace carve(device::Carver& carver, const Plan& plan, const Shape& shape) {
    const std::size_t rows = static_cast<std::size_t>(plan.slots) * plan.config.row_blocks *
                             plan.config.row_tiles * kTileRows;
    Workspace workspace = {};
    workspace.segments = carver.take<Segment>(plan.segments.size());
    carver.end_tables();
    workspace.counters = carver.take<std::int32_t>(plan.counters());
    carver.end_counters();
    workspace.partials = carver.take<float>(rows * shape.head_dim);
    workspace.maxima = carver.take<float2>(rows);
    return workspace;
}

void launch(const Decode& params, const Plan& plan, const Workspace& workspace,
            cudaStream_t stream) {
    using device::require_aligned;
    require_aligned("q", params.q);
    require_aligned("k_pages", params.k_pages);
    require_aligned("v_pages", params.v_pages);
    require_aligned("out", params.out);
    const Shape& shape = params.shape;
    constexpr std::int64_t kPacketBytes = 16;
    const std::int64_t row = shape.head_dim * shape.cache_bytes / kPacketBytes;
    const std::int64_t page = row * shape.kv_heads * shape.page_size;
    device::require(page * shape.pool_pages <= std::int64_t{1} << 32,
                    "the pool has more than 64 GiB of keys");
    Arguments arguments = {};
    arguments.q = params.q;
    arguments.k_pages = params.k_pages;
    arguments.v_pages = params.v_pages;
    arguments.pages = params.pages;
    arguments.out = params.out;
    arguments.workspace = workspace;
    arguments.q_len = shape.q_len;
    arguments.heads = shape.heads;
    arguments.group = Divisor(shape.group());
    arguments.rows = shape.rows();
    arguments.row_blocks = Divisor(plan.config.row_blocks);
    arguments.even = plan.even;
    arguments.list = plan.list;
    arguments.team_warps = plan.team_warps;
    arguments.teams = plan.teams();
    arguments.block_teams = plan.teams() / plan.blocks;
    arguments.page_shift = shape.cache().page_shift();
    arguments.page_stride = static_cast<std::uint32_t>(page);
    arguments.token_stride =
        static_cast<std::uint32_t>(params.head_major ? row : row * shape.kv_heads);
    arguments.head_stride =
        static_cast<std::uint32_t>(params.head_major ? row * shape.page_size : row);
    constexpr float kLog2E = 1.4426950408889634f;
    arguments.scale_log2 = params.scale * kLog2E;
    arguments.value_scale = params.value_scale;
    arguments.is_bf16 = params.dtype == device::Dtype::Bf16;
    // The kernels over FP8 caches are the same, whatever the queries' type.
    if (shape.cache_bytes == 1) return launch_on<__half, 1>(arguments, params, plan, stream);
    device::dispatch<__half, __nv_bfloat16>(params.dtype, [&](auto element) {
        launch_on<decltype(element), 2>(arguments, params, plan, stream);
    });
}

}  // namespace decode
