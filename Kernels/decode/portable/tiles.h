// The tiles that the portable kernel is built with.
#pragma once

namespace decode::portable {

struct TileShape {
    int head_dim;
    // Tiles of 16 rows that a warp holds.
    int row_tiles;
};

inline constexpr TileShape kTiles[] = {{64, 1}, {64, 2}, {128, 1}, {128, 2}, {256, 1}};

}  // namespace decode::portable
