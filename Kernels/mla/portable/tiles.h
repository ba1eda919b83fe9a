// The tiles that the portable kernel is built with: few rows are memory-bound, many are bound by
// the tensor cores.
#pragma once

namespace mla::portable {

struct TileShape {
    int rows;
    int tokens;
    int blocks;  // per SM
    int row_tiles;
    int warp_rows;
    int warp_columns;
    int stages;
};

// By rows.
inline constexpr TileShape kTiles[] = {
    {16, 32, 2, 1, 1, 4, 3}, {32, 32, 1, 1, 2, 4, 5}, {64, 64, 1, 2, 2, 4, 2}};

}  // namespace mla::portable
