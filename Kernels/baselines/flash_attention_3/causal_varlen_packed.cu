#include "Kernels/baselines/flash_attention_3/kernel.cuh"

namespace flash_attention_3 {

void launch_causal_varlen_packed(const Attention& attention, cudaStream_t stream) {
    run</*kCausal=*/true, /*kVarlen=*/true, /*kPacksHeads=*/true, 1>(attention, stream);
}

}  // namespace flash_attention_3
