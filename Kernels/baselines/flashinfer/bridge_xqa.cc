#include "Kernels/baselines/flashinfer/bridge.h"
#include "Kernels/baselines/flashinfer/lib.rs.h"
#include "Kernels/baselines/flashinfer/xqa/xqa.h"

namespace fi::bridge {

bool has_xqa(Dtype dtype, std::uint32_t head_dim, std::uint32_t group, std::uint32_t page_size,
             std::uint32_t q_len, bool fp8_cache) {
    return dtype == Dtype::Bf16 && fi::has_xqa({fp8_cache, head_dim, group, page_size, q_len});
}

std::unique_ptr<Planned> plan_xqa(const Decode& call, const PageTable& pages) {
    return fi::plan_xqa(paged_decode(call), page_table(pages));
}

}  // namespace fi::bridge
