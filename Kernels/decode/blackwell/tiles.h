// The tiles that Blackwell's kernel is built with.
#pragma once

namespace decode::blackwell {

// Of a tile: the rows of the products.
constexpr int kTokens = 128;
// Copies take whole pages, or kTokens of a page: fewer than eight rows would break up a swizzle.
constexpr int kLeastPageTokens = 8;
// Parts of an item that blocks of a cluster may merge.
constexpr int kMostClusterBlocks = 8;

struct TileShape {
    int head_dim;
    // Tiles of 16 query rows: columns of the products.
    int row_tiles;
    // Per cache element.
    int cache_bytes;
};

// Scores of FP8 take three times the columns: those of 64 rows would exceed tensor memory. What 64
// rows of 256 keep in shared memory would leave too little for copies.
inline constexpr TileShape kTiles[] = {
    {64, 1, 2},  {64, 2, 2}, {64, 4, 2},  {128, 1, 2}, {128, 2, 2}, {128, 4, 2}, {256, 1, 2},
    {256, 2, 2}, {64, 1, 1}, {128, 1, 1}, {128, 2, 1}, {256, 1, 1}, {256, 2, 1}};

// Whether the softmax, in which a thread has a token and all rows one after the other, takes less
// time than the tile's bytes at an SM's share of a B200's bandwidth. An estimate: by instructions,
// which FP8 needs more of, to make codes of weights.
constexpr bool keeps_up(const TileShape& tile) {
    constexpr int kBytesPerCycle = 29;
    const int cycles = 100 + tile.row_tiles * 16 * (tile.cache_bytes == 1 ? 28 : 10);
    return cycles * kBytesPerCycle <= 2 * kTokens * tile.head_dim * tile.cache_bytes;
}
constexpr bool all_keep_up() {
    for (const TileShape& tile : kTiles) {
        if (!keeps_up(tile)) return false;
    }
    return true;
}
static_assert(all_keep_up(), "a tile whose softmax takes longer than its copies");

}  // namespace decode::blackwell
