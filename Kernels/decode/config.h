// How a decode step is cut for a machine: pure host code, tested without a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "Kernels/decode/even_cut.h"
#include "Kernels/device/paged/page_table.h"
#include "Kernels/device/paged/split_plan.h"

namespace decode {

// Rows of one tensor-core tile: queries times heads that share a head of the cache.
constexpr int kTileRows = 16;
// That a multiprocessor holds, and a block at most.
constexpr int kWarps = 8;
constexpr int kHalf = kWarps / 2;
// Rows of parts that are merged while all teams work.
constexpr int kMostMergedRows = 256;
// Of the longest item of a list, where a team is not a whole block.
constexpr int kMostParts = 16;
// Teams that an even cut must keep busy, of a hundred.
constexpr int kLeastBusyPercent = 93;
// The most bytes of a head's keys (or values) that a warp multiplies at a time.
constexpr int kTileBytes = 4096;

// Tokens of a tile: each lane finds the place of one, and the sums of two tiles of rows of 128
// leave registers for the scores of 16 only.
constexpr int tile_tokens(int head_dim, int row_tiles, int cache_bytes) {
    const int fit = kTileBytes / (head_dim * cache_bytes);
    const int most = head_dim * row_tiles > 128 ? 16 : 32;
    return fit < most ? fit : most;
}

struct Shape {
    int batch;
    int q_len;
    int heads;
    int kv_heads;
    int head_dim;
    int page_size;
    int pool_pages;
    // Of an element of the cache: 2, or 1 for FP8.
    int cache_bytes = 2;

    int group() const { return heads / kv_heads; }
    // Rows of queries that share a head of a sequence's cache.
    int rows() const { return q_len * group(); }
    device::PagedCache cache() const { return {batch, page_size, pool_pages}; }
};

using device::PageTable;

struct Config {
    // Tiles of 16 rows that a warp holds: 1 or 2.
    int row_tiles;
    // Teams with row_tiles * 16 rows each that read the same tokens at the same time.
    int row_blocks;
    // Tokens of a tile.
    int tile_tokens;
};

struct Plan {
    Config config;
    // Either an even cut, or a list in which the first segment of share s is number s.
    EvenCut even;
    std::vector<Segment> segments;
    // row_blocks teams work on each.
    int shares;
    // Warps of a team: one, half a block's most, or all.
    int team_warps;
    int blocks;
    // Warps of a block: all that a multiprocessor holds, or half of them.
    int block_warps;
    int slots;
    int items;

    bool is_even() const { return even.segments > 0; }
    int teams() const { return shares * config.row_blocks; }
    // Counts of arrivals, one per item and row block.
    int counters() const { return items * config.row_blocks; }
    int first_segment(int share) const { return is_even() ? even.first_segment(share) : share; }
    Segment segment(int number) const {
        return is_even() ? even.segment(number) : segments[number];
    }
};

// Throws std::invalid_argument, naming the value, for a shape that the kernel does not serve.
Config choose(const Shape& shape);

// Validates both, then cuts the work.
Plan plan(const Shape& shape, const PageTable& table, int multiprocessors);

// `rows 1x16 tile 16 team 8 blocks 128 even shares 128 slots 128`, for tables and facts.
std::string describe(const Plan& plan);

}  // namespace decode
