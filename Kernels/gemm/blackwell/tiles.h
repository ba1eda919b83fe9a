// The tiles that Blackwell's kernel is built with.
#pragma once

namespace gemm::blackwell {

struct TileShape {
    int blocks;  // that share a tile, each with 128 of its rows: 1, or a pair
    int columns;
    int stages;
    bool scaled;  // FP8 operands

    constexpr int rows() const { return 128 * blocks; }
};

inline constexpr TileShape kTiles[] = {
    {2, 256, 6, false}, {1, 256, 4, false}, {1, 128, 6, false},
    {1, 64, 8, false},  {1, 128, 5, true},
};

}  // namespace gemm::blackwell
