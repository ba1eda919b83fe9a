#include "Kernels/baselines/flash_attention_3/attention.h"

namespace flash_attention_3 {
namespace {

struct Built {
    Kernel kernel;
    Launch launch;
};

}  // namespace

Launch find(const Kernel& kernel) {
#ifdef H2H_BUILT_HOPPER
    static constexpr Built kBuilt[] = {
        {{/*causal=*/true, /*varlen=*/false, /*packs_heads=*/false, 1}, launch_causal_dense},
        {{/*causal=*/true, /*varlen=*/true, /*packs_heads=*/true, 1}, launch_causal_varlen_packed},
    };
    for (const Built& built : kBuilt) {
        if (built.kernel == kernel) return built.launch;
    }
#else
    static_cast<void>(kernel);
#endif
    return nullptr;
}

}  // namespace flash_attention_3
