#include "Kernels/baselines/flash_attention/flash_attention_2.h"

#include <stdexcept>
#include <string>

namespace flash_attention {

void launch(const FlashAttention2& params, cudaStream_t stream) {
    if (params.head_dim == 64) return launch_64(params, stream);
    if (params.head_dim != 128) {
        throw std::invalid_argument("FlashAttention-2: head dimension " +
                                    std::to_string(params.head_dim) + "; expected 64 or 128");
    }
    params.causal ? launch_causal_128(params, stream) : launch_full_128(params, stream);
}

}  // namespace flash_attention
