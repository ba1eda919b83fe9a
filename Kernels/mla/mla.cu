#include <stdexcept>
#include <string>

#include "Kernels/device/launch.h"
#include "Kernels/mla/launch.h"

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

#ifdef MLA_WITH_WGMMA
constexpr bool kHasWgmma = true;

void launch_seesaw(const Arguments& arguments, const Plan& plan, const MlaDecode& params,
                   cudaStream_t stream) {
    if (!(params.scale > 0.0f)) {
        throw std::invalid_argument("scale is " + std::to_string(params.scale) +
                                    "; it must be positive");
    }
    (params.type == ElementType::kBf16 ? launch_seesaw_bf16 : launch_seesaw_f16)(
        arguments, plan, params.shape, stream);
}
#else
constexpr bool kHasWgmma = false;

void launch_seesaw(const Arguments&, const Plan&, const MlaDecode&, cudaStream_t) {
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
    const bool is_bf16 = params.type == ElementType::kBf16;
    if (plan.config.variant == Variant::kSeesaw) {
        launch_seesaw(arguments, plan, params, stream);
    } else {
        (is_bf16 ? launch_bf16 : launch_f16)(arguments, plan, stream);
    }
    if (plan.merges.empty()) return;
    (is_bf16 ? launch_merge_bf16 : launch_merge_f16)(arguments, plan, stream);
}

}  // namespace mla
