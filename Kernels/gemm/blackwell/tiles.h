// The tiles that Blackwell's kernel is built with.
#pragma once

namespace gemm::blackwell {

// Of the operands: none; fp32, of blocks of 128; or in tiles, for the tensor cores.
enum class Scales { kNone, kBlocks, kTiles };

struct TileShape {
    int blocks;  // that share a tile, each with 128 of its rows: 1, or a pair
    int columns;
    int stages;
    Scales scales;

    constexpr int rows() const { return 128 * blocks; }
};

inline constexpr TileShape kTiles[] = {
    {2, 256, 6, Scales::kNone},  {1, 256, 4, Scales::kNone},   {1, 128, 6, Scales::kNone},
    {1, 64, 8, Scales::kNone},   {2, 128, 7, Scales::kBlocks}, {1, 128, 5, Scales::kBlocks},
    {2, 192, 5, Scales::kTiles}, {1, 128, 5, Scales::kTiles},
};

}  // namespace gemm::blackwell
