// How a decode step is split up for a machine: pure host code, tested without a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "Kernels/decode/even_cut.h"
#include "Kernels/device/machine.h"
#include "Kernels/device/paged/page_table.h"
#include "Kernels/device/paged/split_plan.h"

namespace decode {

// Rows of one tensor-core tile: queries times the heads that share a KV head.
constexpr int kTileRows = 16;
// Per SM, and at most per block.
constexpr int kWarps = 8;
constexpr int kHalf = kWarps / 2;
// The same of wide heads: a warp's sums alone are half of its registers.
constexpr int most_warps(int head_dim) { return head_dim > 128 ? kHalf : kWarps; }
// Rows of parts that can be merged while all teams work.
constexpr int kMostMergedRows = 256;
// Parts of a list's longest item, unless a team is a whole block.
constexpr int kMostParts = 16;
// Percentage of teams that an even cut must keep busy.
constexpr int kLeastBusyPercent = 93;
// Most bytes of a head's keys (or values) that a warp multiplies at a time: as many per SM,
// whatever its warps.
constexpr int tile_bytes(int head_dim) { return 4096 * kWarps / most_warps(head_dim); }

// Tokens per tile: each lane looks up one, and the sums of two tiles of rows of 128 leave registers
// for only 16 scores.
constexpr int tile_tokens(int head_dim, int row_tiles, int cache_bytes) {
    const int fit = tile_bytes(head_dim) / (head_dim * cache_bytes);
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
    // Per cache element: 2, or 1 for FP8.
    int cache_bytes = 2;

    int group() const { return heads / kv_heads; }
    // Query rows that share one KV head of a sequence.
    int rows() const { return q_len * group(); }
    device::PagedCache cache() const { return {batch, page_size, pool_pages}; }
};

using device::Arch;
using device::Machine;
using device::PageTable;

struct Config {
    Arch arch;
    // 16-row tiles per warp: 1 or 2; per block of Blackwell's, up to 4.
    int row_tiles;
    // Teams of row_tiles * 16 rows each that read the same tokens at the same time.
    int row_blocks;
    // Tokens per tile.
    int tile_tokens;
    // Per SM. A team of Blackwell's kernel is a block that has an SM of its own; here it counts as
    // a warp.
    int warps;
};

struct Plan {
    Config config;
    // Either an even cut, or a list in which share s starts with segment s.
    EvenCut even;
    ListCut list;
    std::vector<Segment> segments;
    // row_blocks teams work on each.
    int shares;
    // Warps per team: one, half the block maximum, or all.
    int team_warps;
    int blocks;
    // Warps per block: as many as an SM holds, or half as many.
    int block_warps;
    // Blocks that merge the parts of an item in shared memory; 1 if they use the workspace.
    int cluster_blocks;
    int slots;
    int items;

    bool is_even() const { return even.segments > 0; }
    int teams() const { return shares * config.row_blocks; }
    // Arrival counters, one per item and row block.
    int counters() const { return items * config.row_blocks; }
    int first_segment(int share) const { return is_even() ? even.first_segment(share) : share; }
    Segment segment(int number) const {
        return is_even() ? even.segment(number) : list.segment(segments.data(), number);
    }
};

// Throws std::invalid_argument, naming the value, for a shape that the kernels do not support.
void validate(const Shape& shape);

// Of a valid shape; throws as validate() does.
Config choose(const Shape& shape, const Machine& machine);

// Validates both, then splits the work.
Plan plan(const Shape& shape, const PageTable& table, const Machine& machine);

// `rows 1x16 tile 16 team 8 blocks 128 even shares 128 slots 128`, for tables and facts.
std::string describe(const Plan& plan);

}  // namespace decode
