// Which of FlashAttention-3's kernels runs for a batch: what its mha_fwd and run_mha_fwd_ decide.
#pragma once

#include <string>

namespace flash_attention_3 {

struct Batch {
    // Every sequence has longest_q queries and longest_kv keys.
    bool same_lengths;
    bool causal;
    int longest_q;
    int heads;
    int kv_heads;
    int head_dim;
    int value_dim;
};

struct Kernel {
    int head_dim;
    int value_dim;
    bool causal;
    // With offsets of the sequences, and a scheduler that sorts them first.
    bool varlen;
    // Rows of a tile are queries of all heads that share a KV head.
    bool packs_heads;
    int cluster_blocks;

    bool operator==(const Kernel& other) const {
        return head_dim == other.head_dim && value_dim == other.value_dim &&
               causal == other.causal && varlen == other.varlen &&
               packs_heads == other.packs_heads && cluster_blocks == other.cluster_blocks;
    }
};

// Head dimensions are those that the library has kernels for; it would pad others.
Kernel choose(const Batch& batch);

// As a row of results names it.
std::string name_of(const Kernel& kernel);

}  // namespace flash_attention_3
