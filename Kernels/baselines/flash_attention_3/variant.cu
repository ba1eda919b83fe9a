#include "Kernels/baselines/flash_attention_3/kernel.cuh"

namespace flash_attention_3 {

void FLASH_ATTENTION_3_NAME(const Attention& attention, cudaStream_t stream) {
    run<FLASH_ATTENTION_3_HEAD_DIM, FLASH_ATTENTION_3_VALUE_DIM, FLASH_ATTENTION_3_CAUSAL != 0,
        FLASH_ATTENTION_3_VARLEN != 0, FLASH_ATTENTION_3_PACKS_HEADS != 0, /*kClusterBlocks=*/1>(
        attention, stream);
}

}  // namespace flash_attention_3
