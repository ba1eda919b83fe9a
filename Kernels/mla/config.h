// How a latent-attention decode step is split up for a machine: host code, tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "Kernels/device/machine.h"
#include "Kernels/device/paged/page_table.h"
#include "Kernels/device/paged/split_plan.h"

namespace mla {

constexpr int kLatent = 512;
constexpr int kRope = 64;
// Elements of a query and of a token's cache row: the latent part, then the rotary part.
constexpr int kWidth = kLatent + kRope;
constexpr int kTileRows = 16;

struct Shape {
    int batch;
    int q_len;
    int heads;
    int page_size;
    int pool_pages;
    // Per cache element: 2, or 1 for FP8.
    int cache_bytes = 2;

    // Query rows that share a sequence's cache.
    int rows() const { return q_len * heads; }
    device::PagedCache cache() const { return {batch, page_size, pool_pages}; }
};

using device::Arch;
using device::Machine;
using device::PageTable;

struct Config {
    Arch arch;
    std::size_t tile;  // index into portable kTiles; the others have one
    // Rows per cluster, and tokens per tile.
    int rows;
    int tokens;
    int blocks_per_multiprocessor;
    // Blocks that share rows and tokens: one, or a pair.
    int cluster_blocks;
    // Clusters that read the same tokens at the same time, each for its own rows.
    int row_blocks;
};

// A segment of the plan, as the kernel reads it.
struct alignas(16) Segment {
    std::int32_t sequence;
    std::int32_t page_begin;
    std::int32_t length;
    std::int32_t tile_begin;
    std::int32_t tile_end;
    // Slot of the partial result; -1 if this is the only part.
    std::int32_t slot;
    // The segments of its share.
    std::int32_t share_begin;
    std::int32_t share_end;
};

// A sequence whose result is merged from several segments.
struct alignas(16) Merge {
    std::int32_t sequence;
    std::int32_t first_slot;
    std::int32_t parts;
    std::int32_t unused;
};

struct Plan {
    Config config;
    std::vector<Segment> segments;
    // Segments of share s: share_begin[s] to share_begin[s + 1]; row_blocks clusters work on each.
    std::vector<std::int32_t> share_begin;
    // The first segment of every share again, so that a block finds its work with one load.
    std::vector<Segment> first_segments;
    std::vector<Merge> merges;
    int slots;

    int shares() const { return static_cast<int>(share_begin.size()) - 1; }
    int blocks() const { return shares() * config.row_blocks * config.cluster_blocks; }
};

// Throws std::invalid_argument, naming the value, for a shape that the kernel does not support.
Config choose(const Shape& shape, const Machine& machine);

// Validates both, then splits the work.
Plan plan(const Shape& shape, const PageTable& table, const Machine& machine);

// `rows 2x64 tile 64 blocks 132 segments 70 slots 66`, for tables and facts.
std::string describe(const Plan& plan);

}  // namespace mla
