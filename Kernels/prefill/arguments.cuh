// Arguments that the launchers pass to the tiled kernels.
#pragma once

#include "Kernels/prefill/prefill.h"

namespace prefill {

constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kLn2 = 0.69314718055994530942f;

// How far the running maximum may lag, as a power of two: weights stay below 2^8, which every type
// can hold, and the sums are almost never rescaled.
constexpr float kLag = 8.0f;

struct PrefillArguments {
    const void* q;
    const void* k;
    const void* v;
    void* out;
    float* lse;
    const Tile* tiles;
    WorkCounters* counters;
    Parts parts;
    int tile_count;
    int heads;
    // Query heads that share one KV head.
    int group;
    int kv_heads;
    // Score scale in base 2: scale * log2(e).
    float scale_log2;
    int total_q;
    int total_kv;
    int heads_per_tile;
    int heads_at_once;
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
    arguments.parts = params.parts;
    arguments.tile_count = params.tile_count;
    arguments.heads = params.heads;
    arguments.group = params.heads / params.kv_heads;
    arguments.kv_heads = params.kv_heads;
    arguments.scale_log2 = params.scale * kLog2E;
    arguments.total_q = params.total_q;
    arguments.total_kv = params.total_kv;
    arguments.heads_per_tile = params.heads_per_tile;
    arguments.heads_at_once = params.heads_at_once;
    return arguments;
}

}  // namespace prefill
