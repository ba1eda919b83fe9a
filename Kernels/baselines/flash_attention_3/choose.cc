#include "Kernels/baselines/flash_attention_3/choose.h"

// The library's headers use both without including them.
#include <algorithm>
#include <cmath>

#include "heuristics.h"
#include "tile_size.h"

namespace flash_attention_3 {
namespace {

constexpr int kElementBytes = 2;

}  // namespace

Kernel choose(const Batch& batch) {
    Kernel kernel = {};
    // One query sees every key, with a mask or without.
    kernel.causal = batch.causal && batch.longest_q > 1;
    kernel.varlen = !batch.same_lengths;
    const int group = batch.heads / batch.kv_heads;
    const int tile_rows = std::get<0>(tile_size_fwd_sm90(kHeadDim, kHeadDim, kernel.causal,
                                                         /*is_local=*/false, kElementBytes));
    kernel.packs_heads =
        group > 1 && should_pack_gqa(kernel.varlen, batch.longest_q, group, tile_rows);
    const int rows = batch.longest_q * (kernel.packs_heads ? group : 1);
    const int tiles = (rows + tile_rows - 1) / tile_rows;
    kernel.cluster_blocks = !kernel.causal && !kernel.varlen && tiles % 2 == 0 ? 2 : 1;
    return kernel;
}

std::string name_of(const Kernel& kernel) {
    const auto [rows, keys, in_registers, overlaps] =
        tile_size_fwd_sm90(kHeadDim, kHeadDim, kernel.causal, /*is_local=*/false, kElementBytes);
    static_cast<void>(in_registers);
    static_cast<void>(overlaps);
    return std::string("FlashAttnFwdSm90 ") + (kernel.causal ? "causal" : "full") +
           (kernel.varlen ? " varlen" : " dense") + (kernel.packs_heads ? " packgqa" : "") +
           (kernel.cluster_blocks > 1 ? " cluster2 " : " ") + std::to_string(rows) + "x" +
           std::to_string(keys);
}

}  // namespace flash_attention_3
