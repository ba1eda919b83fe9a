#include <stdexcept>
#include <string>

#include "Kernels/decode/launch_decode.cuh"

namespace decode {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void require_aligned(const char* name, const void* pointer) {
    if (reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0) return;
    throw std::invalid_argument(std::string(name) + " is not aligned to 16 bytes");
}

int log2_of(int power) {
    int log = 0;
    while (1 << log < power) ++log;
    return log;
}

}  // namespace

WorkspaceBytes workspace_bytes(const Plan& plan, const Shape& shape) {
    const std::size_t row_blocks = plan.config.row_blocks;
    const std::size_t rows = plan.slots * row_blocks * plan.config.row_tiles * kTileRows;
    return {aligned(plan.segments.size() * sizeof(Segment)),
            aligned(plan.items * row_blocks * sizeof(std::int32_t)),
            aligned(rows * shape.head_dim * sizeof(float)), aligned(rows * sizeof(float2))};
}

void launch(const Decode& params, const Plan& plan, const Workspace& workspace,
            cudaStream_t stream) {
    require_aligned("q", params.q);
    require_aligned("k_pages", params.k_pages);
    require_aligned("v_pages", params.v_pages);
    require_aligned("out", params.out);
    const Shape& shape = params.shape;
    constexpr std::int64_t kPacketBytes = 16;
    const std::int64_t row = shape.head_dim * shape.cache_bytes / kPacketBytes;
    const std::int64_t page = row * shape.kv_heads * shape.page_size;
    if (page * shape.pool_pages > std::int64_t{1} << 32) {
        throw std::invalid_argument("the pool has more than 64 GiB of keys");
    }
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
    arguments.team_warps = plan.team_warps;
    arguments.teams = plan.teams();
    arguments.block_teams = plan.teams() / plan.blocks;
    arguments.page_shift = log2_of(shape.page_size);
    arguments.page_stride = static_cast<std::uint32_t>(page);
    arguments.token_stride =
        static_cast<std::uint32_t>(params.head_major ? row : row * shape.kv_heads);
    arguments.head_stride =
        static_cast<std::uint32_t>(params.head_major ? row * shape.page_size : row);
    constexpr float kLog2E = 1.4426950408889634f;
    arguments.scale_log2 = params.scale * kLog2E;
    arguments.value_scale = params.value_scale;
    arguments.is_bf16 = params.type == ElementType::kBf16;
    if (shape.cache_bytes == 1) {
        launch_fp8_cache(arguments, shape, plan, stream);
    } else if (params.type == ElementType::kBf16) {
        launch_bf16(arguments, shape, plan, stream);
    } else {
        launch_f16(arguments, shape, plan, stream);
    }
}

}  // namespace decode
