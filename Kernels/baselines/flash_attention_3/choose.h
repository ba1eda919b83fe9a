// Which of FlashAttention-3's kernels runs for a batch: what its mha_fwd and run_mha_fwd_ decide.
#pragma once

#include <string>

namespace flash_attention_3 {

constexpr int kHeadDim = 128;

struct Batch {
    // Every sequence has longest_q queries and longest_kv keys.
    bool same_lengths;
    bool causal;
    int longest_q;
    int heads;
    int kv_heads;
};

struct Kernel {
    bool causal;
    // With offsets of the sequences, and a scheduler that sorts them first.
    bool varlen;
    // Rows of a tile are queries of all heads that share a KV head.
    bool packs_heads;
    int cluster_blocks;

    bool operator==(const Kernel& other) const {
        return causal == other.causal && varlen == other.varlen &&
               packs_heads == other.packs_heads && cluster_blocks == other.cluster_blocks;
    }
};

Kernel choose(const Batch& batch);

// As a row of results names it.
std::string name_of(const Kernel& kernel);

}  // namespace flash_attention_3
