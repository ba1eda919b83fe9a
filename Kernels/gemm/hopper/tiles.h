// The tiles that Hopper's kernel is built with, and when each is used.
#pragma once

#include "Kernels/gemm/config.h"

namespace gemm::hopper {

enum class Use { kNever, kDense, kGroups, kAlways };

// What the blocks of a cluster do together.
enum class Cluster {
    kNone,     // they are alone
    kSplit,    // each has a part of one tile's k
    kStacked,  // two have tiles one below the other, and load b together
    kBeside,   // two have tiles side by side, and load a together
};

struct TileShape {
    int rows;
    int columns;
    int stages;
    int blocks;  // per SM
    Use halves;  // 16-bit operands
    Use scaled;  // FP8 operands
    // The rows are columns of the result, and the columns its rows.
    bool transposed = false;
    Cluster cluster = Cluster::kNone;  // unless it splits

    constexpr bool pairs() const { return cluster != Cluster::kNone; }
    // Tiles that its blocks have together, one below the other and side by side.
    constexpr int down() const { return cluster == Cluster::kStacked ? 2 : 1; }
    constexpr int across() const { return cluster == Cluster::kBeside ? 2 : 1; }
};

// A tile for few rows of 16-bit operands: `across` columns of the result by `down` rows.
constexpr TileShape transposed(int across, int down, int stages, int blocks) {
    return {across, down, stages, blocks, Use::kDense, Use::kNever, true};
}

// For operands whose lines cost L2 more than their bytes.
constexpr TileShape paired(Cluster cluster, int columns, int stages) {
    return {128, columns, stages, 1, Use::kDense, Use::kNever, false, cluster};
}

inline constexpr TileShape kTiles[] = {
    {128, 256, 3, 1, Use::kAlways, Use::kNever},
    {128, 224, 3, 1, Use::kAlways, Use::kNever},
    {128, 208, 3, 1, Use::kDense, Use::kNever},
    {128, 192, 4, 1, Use::kAlways, Use::kAlways},
    {128, 176, 4, 1, Use::kAlways, Use::kNever},
    {128, 160, 4, 1, Use::kAlways, Use::kDense},
    {128, 128, 5, 1, Use::kAlways, Use::kAlways},
    {128, 96, 6, 1, Use::kAlways, Use::kNever},
    {128, 64, 8, 1, Use::kDense, Use::kDense},
    {64, 128, 8, 1, Use::kDense, Use::kNever},
    {64, 128, 4, 2, Use::kGroups, Use::kAlways},
    {64, 64, 12, 1, Use::kDense, Use::kNever},
    {64, 64, 6, 2, Use::kDense, Use::kDense},
    {64, 48, 7, 2, Use::kDense, Use::kDense},
    {64, 32, 8, 2, Use::kAlways, Use::kAlways},
    {32, 128, 4, 2, Use::kGroups, Use::kAlways},
    {32, 64, 7, 2, Use::kGroups, Use::kAlways},
    {32, 32, 12, 2, Use::kAlways, Use::kAlways},
    {16, 64, 9, 2, Use::kNever, Use::kDense},
    {16, 32, 16, 2, Use::kNever, Use::kDense},
    {16, 16, 20, 2, Use::kNever, Use::kDense},
    transposed(192, 144, 4, 1),
    transposed(192, 96, 5, 1),
    transposed(192, 64, 6, 1),
    transposed(128, 176, 4, 1),
    transposed(128, 144, 4, 1),
    transposed(128, 112, 5, 1),
    transposed(128, 32, 4, 2),
    transposed(128, 16, 5, 2),
    transposed(64, 256, 4, 1),
    transposed(64, 208, 5, 1),
    transposed(64, 176, 5, 1),
    transposed(64, 144, 6, 1),
    transposed(64, 96, 8, 1),
    transposed(64, 80, 9, 1),
    transposed(64, 64, 10, 1),
    transposed(64, 48, 6, 2),
    transposed(64, 32, 7, 2),
    transposed(64, 16, 18, 1),
    transposed(64, 16, 9, 2),
    paired(Cluster::kStacked, 256, 3),
    paired(Cluster::kStacked, 192, 4),
    paired(Cluster::kBeside, 96, 6),
};

constexpr bool is_used(const TileShape& tile, bool scaled, Layout layout) {
    const Use use = scaled ? tile.scaled : tile.halves;
    return use == Use::kAlways || use == (layout == Layout::kDense ? Use::kDense : Use::kGroups);
}

// What a kernel is built for.
struct Kind {
    Layout layout;
    bool splits;  // a tile's k over the blocks of a cluster
};

inline constexpr Kind kKinds[] = {
    {Layout::kDense, false},
    {Layout::kDense, true},
    {Layout::kContiguous, true},  // if the host says so
    {Layout::kMasked, false},
};

}  // namespace gemm::hopper
