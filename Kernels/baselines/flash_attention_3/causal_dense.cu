#include "Kernels/baselines/flash_attention_3/kernel.cuh"

namespace flash_attention_3 {

void launch_causal_dense(const Attention& attention, cudaStream_t stream) {
    run</*kCausal=*/true, /*kVarlen=*/false, /*kPacksHeads=*/false, 1>(attention, stream);
}

}  // namespace flash_attention_3
