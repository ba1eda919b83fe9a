// The tiles that the portable kernel is built with.
#pragma once

namespace gemm::portable {

struct TileShape {
    int rows;
    int columns;
    int warp_rows;
    int warp_columns;
    int stages;
    int blocks;  // per SM: as many as shared memory holds
};

inline constexpr TileShape kTiles[] = {{128, 128, 64, 32, 4, 1}, {32, 64, 32, 16, 6, 3}};

}  // namespace gemm::portable
