// What the tiled kernels get from their launchers.
#pragma once

#include "Kernels/prefill/prefill.h"

namespace prefill {

constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kLn2 = 0.69314718055994530942f;

// How far a maximum may lag behind, as a power of two: weights stay below 2^8, which every type
// holds, and the sums are rescaled almost never.
constexpr float kLag = 8.0f;

struct PrefillArguments {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    float* lse;
    const Tile* tiles;
    WorkCounters* counters;
    int tile_count;
    int heads;
    // Heads of the queries that share one head of keys.
    int group;
    int kv_heads;
    // Times scores, for powers of two.
    float scale_log2;
    int total_q;
    int total_kv;
    // Keys that a query sees more than the one before it: 1 with the causal mask, else 0.
    int step;
};

inline PrefillArguments arguments_of(const Prefill& params) {
    PrefillArguments arguments = {};
    arguments.q = params.q;
    arguments.k = params.k;
    arguments.v = params.v;
    arguments.out = params.out;
    arguments.lse = params.lse;
    arguments.tiles = params.tiles;
    arguments.counters = params.counters;
    arguments.tile_count = params.tile_count;
    arguments.heads = params.heads;
    arguments.group = params.heads / params.kv_heads;
    arguments.kv_heads = params.kv_heads;
    arguments.scale_log2 = params.scale * kLog2E;
    arguments.total_q = params.total_q;
    arguments.total_kv = params.total_kv;
    arguments.step = params.causal ? 1 : 0;
    return arguments;
}

}  // namespace prefill
