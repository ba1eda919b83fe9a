// Which block works on which queries: a pure function of the lengths, tested without a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "Kernels/prefill/config.h"

namespace prefill {

// Queries of one sequence that one block takes for one head, and the keys they see. Kernels read it
// with one load.
struct alignas(16) Tile {
    // Of the first query, in the packed tensor.
    std::int32_t first_row;
    std::int32_t rows;
    // Of the sequence, in the packed tensor.
    std::int32_t first_key;
    // Keys that the first query sees. With the causal mask each next query sees one more.
    std::int32_t visible;
};

struct Sequences {
    // Where each sequence starts, plus the end: one more entry than sequences.
    std::vector<std::int32_t> starts_q;
    std::vector<std::int32_t> starts_kv;
    bool causal;
};

// Tiles of at most `tile_rows` queries that cover every query once, heaviest first: blocks start in
// this order, so that short ones fill the gaps at the end.
//
// Throws std::invalid_argument, naming the sequence, if a query sees no key or a length is
// negative.
std::vector<Tile> cut_tiles(const Sequences& sequences, int tile_rows);

// How many query heads of one KV head share a tile: 1, or all of the group if that takes fewer
// steps. A tile then has fewer queries, so that less of it is past the end of a short sequence or
// behind the causal mask.
int heads_per_tile(const Sequences& sequences, const TileShape& tile, int group);

}  // namespace prefill
