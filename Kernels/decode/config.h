// How a decode step is cut for a machine: pure host code, tested without a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "Kernels/device/page_table.h"
#include "Kernels/device/split_plan.h"

namespace decode {

// Rows of one tensor-core tile: queries times heads that share a head of the cache.
constexpr int kTileRows = 16;
constexpr int kWarps = 4;
// The most bytes of a head's keys (or values) that a warp multiplies at a time.
constexpr int kTileBytes = 4096;

// Tokens of a tile: each lane finds the place of one, and the sums of two tiles of rows of 128
// leave registers for the scores of 16 only.
constexpr int tile_tokens(int head_dim, int row_tiles, int cache_bytes) {
    const int fit = kTileBytes / (head_dim * cache_bytes);
    const int most = head_dim * row_tiles > 128 ? 16 : 32;
    return fit < most ? fit : most;
}

// Blocks that a multiprocessor holds at once.
constexpr int kBlocksPerMultiprocessor = 2;
// Rows of parts that are merged while all blocks of a multiprocessor work.
constexpr int kMostMergedRows = 384;

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
    // Blocks of row_tiles * 16 rows that read the same tokens at the same time.
    int row_blocks;
    // Tokens of a tile.
    int tile_tokens;
};

// A segment of the plan as the kernel reads it.
struct alignas(16) Segment {
    std::int32_t sequence;
    std::int32_t kv_head;
    std::int32_t page_begin;
    std::int32_t length;
    std::int32_t tile_begin;
    std::int32_t tile_end;
    // Slot of the partial result; -1 where there is no other part.
    std::int32_t slot;
    std::int32_t first_slot;
    std::int32_t parts;
    // Sequence and head as one number, for the count of arrivals.
    std::int32_t item;
    std::int32_t unused[2];
};

struct Plan {
    Config config;
    std::vector<Segment> segments;
    // Segments of share s: share_begin[s] to share_begin[s + 1]; row_blocks blocks work on each.
    std::vector<std::int32_t> share_begin;
    int slots;
    int items;

    int shares() const { return static_cast<int>(share_begin.size()) - 1; }
    int blocks() const { return shares() * config.row_blocks; }
};

// Throws std::invalid_argument, naming the value, for a shape that the kernel does not serve.
Config choose(const Shape& shape);

// Validates both, then cuts the work.
Plan plan(const Shape& shape, const PageTable& table, int multiprocessors);

// `rows 1x16 tile 16 blocks 264 segments 300 slots 290`, for tables and facts.
std::string describe(const Plan& plan);

}  // namespace decode
