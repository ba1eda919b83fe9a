#include "Kernels/baselines/flash_attention_3/attention.h"

namespace flash_attention_3 {

#ifdef H2H_BUILT_HOPPER
#define FLASH_ATTENTION_3_VARIANT(name, ...) \
    void launch_##name(const Attention& attention, cudaStream_t stream);
#include "Kernels/baselines/flash_attention_3/variants.inc"
#undef FLASH_ATTENTION_3_VARIANT
#endif

namespace {

struct Built {
    Kernel kernel;
    Launch launch;
};

}  // namespace

Launch find(const Kernel& kernel) {
#ifdef H2H_BUILT_HOPPER
    static constexpr Built kBuilt[] = {
#define FLASH_ATTENTION_3_VARIANT(name, ...) {{__VA_ARGS__}, launch_##name},
#include "Kernels/baselines/flash_attention_3/variants.inc"
#undef FLASH_ATTENTION_3_VARIANT
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
