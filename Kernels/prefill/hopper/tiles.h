// The tiles that Hopper's kernel is built with.
//
// A consumer has 64 rows; what its registers hold of scores, weights and sums bounds the keys of a
// step (traits.cuh). More consumers hide more of each other's softmax, and more rows read keys and
// values less often; fewer rows make more blocks.
#pragma once

#include <iterator>

#include "Kernels/prefill/config.h"

namespace prefill::hopper {

// As many keys as registers and two stages of shared memory allow, in multiples of 16.
inline constexpr TileShape kTiles[] = {
    {64, 128, 128}, {64, 192, 128},       {64, 256, 64},       {128, 128, 128},
    {128, 192, 80}, {192, 128, 128, 128}, {192, 192, 80, 128}, {256, 128, 80},
};

// What each takes for a key, in cycles of an SM, if L2 has the key and its value; and what all take
// besides. Fitted to times on an H200, of random batches where there is more than one tile.
inline constexpr double kCyclesPerKey[] = {13, 15.3, 21, 18.65, 26, 23.5, 36, 38};
inline constexpr double kCyclesPerTile = 4100;
static_assert(std::size(kCyclesPerKey) == std::size(kTiles));

}  // namespace prefill::hopper
