#include "Kernels/baselines/flash_attention_3/choose.h"

// The library's headers use both without including them.
#include <algorithm>
#include <cmath>

#include "heuristics.h"
#include "tile_size.h"

namespace flash_attention_3 {
namespace {

constexpr int kElementBytes = 2;
// Head dimension from which two blocks share keys where no mask tells them apart.
constexpr int kLeastPairedDim = 128;
// The one that names leave out.
constexpr int kUsualDim = 128;

auto tile_size(const Kernel& kernel) {
    return tile_size_fwd_sm90(kernel.head_dim, kernel.value_dim, kernel.causal, /*is_local=*/false,
                              kElementBytes);
}

}  // namespace

Kernel choose(const Batch& batch) {
    Kernel kernel = {};
    kernel.head_dim = batch.head_dim;
    kernel.value_dim = batch.value_dim;
    // One query sees every key, with a mask or without.
    kernel.causal = batch.causal && batch.longest_q > 1;
    kernel.varlen = !batch.same_lengths;
    const int group = batch.heads / batch.kv_heads;
    const int tile_rows = std::get<0>(tile_size(kernel));
    kernel.packs_heads =
        group > 1 && should_pack_gqa(kernel.varlen, batch.longest_q, group, tile_rows);
    const int rows = batch.longest_q * (kernel.packs_heads ? group : 1);
    const int tiles = (rows + tile_rows - 1) / tile_rows;
    const bool pairs = kernel.head_dim >= kLeastPairedDim && !kernel.causal && !kernel.varlen;
    kernel.cluster_blocks = pairs && tiles % 2 == 0 ? 2 : 1;
    return kernel;
}

std::string name_of(const Kernel& kernel) {
    const auto [rows, keys, in_registers, overlaps] = tile_size(kernel);
    static_cast<void>(in_registers);
    static_cast<void>(overlaps);
    std::string name = "FlashAttnFwdSm90 ";
    if (kernel.head_dim != kernel.value_dim) {
        name += std::to_string(kernel.head_dim) + "/" + std::to_string(kernel.value_dim) + " ";
    } else if (kernel.head_dim != kUsualDim) {
        name += std::to_string(kernel.head_dim) + " ";
    }
    return name + (kernel.causal ? "causal" : "full") + (kernel.varlen ? " varlen" : " dense") +
           (kernel.packs_heads ? " packgqa" : "") +
           (kernel.cluster_blocks > 1 ? " cluster2 " : " ") + std::to_string(rows) + "x" +
           std::to_string(keys);
}

}  // namespace flash_attention_3
