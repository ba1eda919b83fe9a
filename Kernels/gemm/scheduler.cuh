// The tile scheduler: which tiles of the result exist, and in which order blocks walk over them.
//
// Empty groups and tiles that are all padding cost no block any time: at the start one warp lists
// the row tiles that hold something, identically in every block.
#pragma once

#include <cstdint>

#include "Kernels/device/divider.h"
#include "Kernels/device/integers.h"
#include "Kernels/gemm/gemm.h"

namespace gemm {

// Row tiles walked for one column tile before the next: their part of a, and b for a few columns,
// stay in L2.
constexpr int kBandRows = 16;

// What the host knows of the walk over tiles: at the start of a short product, divisions take
// longer than the operands.
struct Walk {
    Walk(const Shape& shape, int tile_rows, int tile_columns)
        : wide(device::divide_up(shape.n, tile_columns)),
          high(device::divide_up(shape.rows, tile_rows)),
          per_band(std::int64_t{kBandRows} * wide),
          last_band((high - 1) % kBandRows + 1) {}

    int wide;  // tiles across
    int high;  // and down, if the product is dense
    device::Divider per_band;
    device::Divider last_band;  // its row tiles, if the product is dense
};

struct Tile {
    int group;
    int column;             // first column
    std::int64_t row;       // first row of a and out
    std::int64_t limit;     // first row past the group, or the end
    std::int64_t in_group;  // first row, counted from the start of a masked group's room
};

// What a kernel for dense products alone has instead of a list: all tiles are there.
struct NoList {};

struct TileList {
    int count;
    // Index of each among all the layout has room for; unused for dense products.
    std::uint16_t numbers[kMaxRowTiles];
};

// Contiguous: a tile whose first row is padding is all padding, because a group's rows come first.
// Reads many at a time, because one load takes as long as all of them.
template <int kRows>
__device__ void list_contiguous(const Gemm& p, TileList& list) {
    constexpr int kBatch = 8;
    const int lane = threadIdx.x % 32;
    const int tiles = (p.shape.rows + kRows - 1) / kRows;
    int count = 0;
    for (int start = 0; start < tiles; start += 32 * kBatch) {
        int group[kBatch];
        for (int i = 0; i < kBatch; ++i) {
            const int tile = start + 32 * i + lane;
            group[i] = tile < tiles ? p.index[std::int64_t{tile} * kRows] : -1;
        }
        for (int i = 0; i < kBatch; ++i) {
            const unsigned used = __ballot_sync(~0u, group[i] >= 0);
            if (group[i] >= 0) {
                const int before = __popc(used & ((1u << lane) - 1));
                list.numbers[count + before] = static_cast<std::uint16_t>(start + 32 * i + lane);
            }
            count += __popc(used);
        }
    }
    if (lane == 0) list.count = count;
}

template <int kRows>
__device__ void list_masked(const Gemm& p, TileList& list) {
    const int lane = threadIdx.x % 32;
    const int room = (p.shape.rows + kRows - 1) / kRows;  // tiles per group
    int count = 0;
    for (int start = 0; start < p.shape.groups; start += 32) {
        const int group = start + lane;
        const int used = group < p.shape.groups ? p.index[group] : 0;
        const int tiles = (used + kRows - 1) / kRows;
        int end = tiles;  // inclusive scan over lanes
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, end, step);
            if (lane >= step) end += other;
        }
        for (int i = 0; i < tiles; ++i) {
            list.numbers[count + end - tiles + i] = static_cast<std::uint16_t>(group * room + i);
        }
        count += __shfl_sync(~0u, end, 31);
    }
    if (lane == 0) list.count = count;
}

// Called by the first warp; the block must synchronise before anyone reads the list. A kernel for
// one layout names it.
template <int kRows>
__device__ void make_list(const Gemm& p, Layout layout, TileList& list) {
    switch (layout) {
        case Layout::kDense:
            if (threadIdx.x == 0) list.count = (p.shape.rows + kRows - 1) / kRows;
            return;
        case Layout::kContiguous:
            return list_contiguous<kRows>(p, list);
        case Layout::kMasked:
            return list_masked<kRows>(p, list);
    }
}

template <int kRows>
__device__ void make_list(const Gemm&, Layout, NoList&) {}

__device__ inline int tile_count(const TileList& list, const Walk& walk) {
    return list.count * walk.wide;
}

__device__ inline int tile_count(NoList, const Walk& walk) { return walk.high * walk.wide; }

template <int kRows, int kColumns>
__device__ Tile tile_at(const Gemm& p, Layout, NoList, const Walk& walk, int number) {
    const int band = static_cast<int>(walk.per_band.quotient(number));
    const int within = number - static_cast<int>(walk.per_band.times(band));
    const bool whole = walk.high - band * kBandRows >= kBandRows;
    const int band_rows = whole ? kBandRows : static_cast<int>(walk.last_band.divisor());
    const int across =
        whole ? within / kBandRows : static_cast<int>(walk.last_band.quotient(within));
    const std::int64_t row = std::int64_t{kRows} * (band * kBandRows + within - across * band_rows);
    return {0, across * kColumns, row, p.shape.rows, row};
}

template <int kRows, int kColumns>
__device__ Tile tile_at(const Gemm& p, Layout layout, const TileList& list, const Walk& walk,
                        int number) {
    const int band = static_cast<int>(walk.per_band.quotient(number));
    const int within = number - static_cast<int>(walk.per_band.times(band));
    const int band_rows = min(kBandRows, list.count - band * kBandRows);
    // Only the last band is lower.
    const int across = band_rows == kBandRows ? within / kBandRows : within / band_rows;
    const int row_tile = band * kBandRows + within - across * band_rows;
    Tile tile;
    tile.column = across * kColumns;
    tile.group = 0;
    tile.limit = p.shape.rows;
    const int listed = layout == Layout::kDense ? row_tile : list.numbers[row_tile];
    if (layout == Layout::kMasked) {
        const int room = (p.shape.rows + kRows - 1) / kRows;
        tile.group = listed / room;
        tile.in_group = listed % room * kRows;
        const std::int64_t start = std::int64_t{tile.group} * p.shape.rows;
        tile.row = start + tile.in_group;
        tile.limit = start + p.index[tile.group];
    } else {
        tile.row = tile.in_group = std::int64_t{listed} * kRows;
        if (layout == Layout::kContiguous) tile.group = p.index[tile.row];
    }
    return tile;
}

// Elements per line of a_scales: whole 16-byte pieces.
__device__ inline std::int64_t a_scale_line(const Shape& shape) { return (shape.rows + 3) / 4 * 4; }

// The scale of the tile's first row for the first 128 of k; rows are contiguous, and each block of
// k is one line of rows.
__device__ inline const float* a_scales_of(const Gemm& p, const Tile& tile) {
    const std::int64_t group = p.shape.layout == Layout::kMasked ? tile.group : 0;
    const std::int64_t lines = group * (p.shape.k / kScaleBlock);
    return static_cast<const float*>(p.a_scales) + lines * a_scale_line(p.shape) + tile.in_group;
}

// The scale of b for a tile's columns; blocks of k are contiguous.
__device__ inline const float* b_scales_of(const Gemm& p, const Tile& tile) {
    const int wide = (p.shape.n + kScaleBlock - 1) / kScaleBlock;
    const std::int64_t line = std::int64_t{tile.group} * wide + tile.column / kScaleBlock;
    return static_cast<const float*>(p.b_scales) + line * (p.shape.k / kScaleBlock);
}

// From those to the scales of the next block of columns, into which the tile may reach. Past the
// last block there is nothing to scale.
__device__ inline int to_next_b_scales(const Gemm& p, const Tile& tile) {
    const int next = (tile.column / kScaleBlock + 1) * kScaleBlock;
    return next < p.shape.n ? p.shape.k / kScaleBlock : 0;
}

}  // namespace gemm
