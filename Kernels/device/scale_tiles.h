// Scales of MXFP8, NVFP4, MXFP4 and fp8_ue8m0 as tensor cores read them: tiles of 128 rows by 4
// scales, 512 bytes each, one after another along the rows. A tile has 16 bytes for rows r, r + 32,
// r + 64 and r + 96, 4 of each.
#pragma once

#include <cstdint>

#if !defined(__CUDACC__)
#define H2H_SCALE_TILES_FUNCTION
#else
#define H2H_SCALE_TILES_FUNCTION __host__ __device__
#endif

namespace device {

constexpr int kScaleTileRows = 128;
constexpr int kScaleTileColumns = 4;
constexpr int kScaleTileBytes = kScaleTileRows * kScaleTileColumns;

// Tiles of a row with this many scales.
H2H_SCALE_TILES_FUNCTION constexpr int scale_tiles_across(int scales) {
    return (scales + kScaleTileColumns - 1) / kScaleTileColumns;
}

// Where the scale of a row lies; `across` is in tiles.
H2H_SCALE_TILES_FUNCTION constexpr std::int64_t scale_place(std::int64_t row, int scale,
                                                            int across) {
    const std::int64_t tile = row / kScaleTileRows * across + scale / kScaleTileColumns;
    const int in_tile = static_cast<int>(row % kScaleTileRows);
    return tile * kScaleTileBytes + in_tile % 32 * 16 + in_tile / 32 * 4 +
           scale % kScaleTileColumns;
}

}  // namespace device
