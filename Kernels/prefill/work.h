// Which block works on which queries: a pure function of the lengths, tested without a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "Kernels/prefill/config.h"

namespace prefill {

// Queries of one sequence that one block takes for one head, and the keys they see there.
struct alignas(16) Tile {
    // Of the first query, in the packed tensor.
    std::int32_t first_row;
    std::int32_t rows;
    // In the packed tensor.
    std::int32_t first_key;
    // Keys that the first query sees.
    std::int32_t visible;
    // How many more each next query sees: 1 with the causal mask, else 0.
    std::int32_t step;
    // Of the first query, among the partial results; negative if these are all of its keys.
    std::int32_t part_row;

    // Keys that the last query sees.
    constexpr std::int32_t seen() const { return visible + step * (rows - 1); }
};

// Queries whose results are merged from those of several tiles.
struct alignas(16) Merge {
    std::int32_t first_row;
    std::int32_t rows;
    // Of the first query in the first part; the next part's follow the last query's.
    std::int32_t part_row;
    std::int32_t parts;
};

struct Work {
    std::vector<Tile> tiles;
    std::vector<Merge> merges;
    // Of all parts.
    std::int32_t part_rows = 0;
};

struct Sequences {
    // Where each sequence starts, plus the end: one more entry than sequences.
    std::vector<std::int32_t> starts_q;
    std::vector<std::int32_t> starts_kv;
    bool causal;
};

// Tiles of at most `tile_rows` queries that cover every query once, longest first: blocks start in
// this order, so that short ones fill the gaps at the end.
//
// Throws std::invalid_argument, naming the sequence, if a query sees no key or a length is
// negative.
std::vector<Tile> cut_tiles(const Sequences& sequences, int tile_rows);

// How many query heads of one KV head share a tile: 1, or all of the group if that takes fewer
// steps. A tile then has fewer queries, so that less of it is past the end of a short sequence or
// behind the causal mask.
int heads_per_tile(const Sequences& sequences, const TileShape& tile, int group);

// A tile, and a list: those that have all tiles, one for every head or group of heads that share a
// tile.
struct Place {
    int tile;  // negative past the last
    int list;
};

// The order of work: all tiles of some lists, longest first, then those of the next.
constexpr Place place_of(int index, int tiles, int lists, int lists_at_once) {
    if (index >= tiles * lists) return {-1, 0};
    const int first = index / (tiles * lists_at_once) * lists_at_once;
    const int together = lists - first < lists_at_once ? lists - first : lists_at_once;
    const int rest = index - tiles * first;
    const int tile = rest / together;
    return {tile, first + rest - tile * together};
}

// Divides the keys of the longest tiles among several where that ends sooner, merging included: a
// few queries over a long cache would leave most SMs without work. Every tile is worked on `times`
// times, once for every head or group of heads, with `keys` per step.
Work split_keys(std::vector<Tile> tiles, int times, int keys, int multiprocessors);

// Keys and values of the heads that work is for.
struct Cached {
    int kv_heads;
    // Of one of them, in all sequences.
    std::int64_t head_bytes;
    // Queries that read them at about the same time: a tile's, of every head that has tiles apart.
    int rows_per_read;
};

// How many KV heads to work on before the next: as many as L2 has room for if memory could not keep
// up with tiles that all read other keys and values, otherwise all. Every tile is worked on `times`
// times for a KV head.
int kv_heads_at_once(const Work& work, const Cached& cached, int times, const Machine& machine);

}  // namespace prefill
