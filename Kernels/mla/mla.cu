#include <stdexcept>
#include <string>

#include "Kernels/mla/launch_mla.cuh"

namespace mla {
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

WorkspaceBytes workspace_bytes(const Plan& plan) {
    const std::size_t rows =
        static_cast<std::size_t>(plan.slots) * plan.config.row_blocks * plan.config.rows;
    return {aligned(plan.segments.size() * sizeof(Segment)),
            aligned(plan.share_begin.size() * sizeof(std::int32_t)),
            aligned(plan.merges.size() * sizeof(Merge)), aligned(rows * kLatent * sizeof(float)),
            aligned(rows * sizeof(float2))};
}

void launch(const MlaDecode& params, const Plan& plan, const Workspace& workspace,
            cudaStream_t stream) {
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
    arguments.page_shift = log2_of(shape.page_size);
    constexpr float kLog2E = 1.4426950408889634f;
    arguments.scale_log2 = params.scale * kLog2E;
    if (params.type == ElementType::kBf16) {
        launch_bf16(arguments, plan, stream);
    } else {
        launch_f16(arguments, plan, stream);
    }
}

}  // namespace mla
