// The tiles that Hopper's kernel is built with.
//
// A consumer has 64 rows; what its registers hold of scores, weights and sums bounds the keys of a
// step (traits.cuh). More consumers hide more of each other's softmax, and more rows read keys and
// values less often; fewer rows make more blocks.
#pragma once

#include "Kernels/prefill/config.h"

namespace prefill::hopper {

// With few queries, in general, and with many keys; of larger heads, with few and in general, or
// for both. As many keys as registers and two stages of shared memory allow, in multiples of 16.
inline constexpr TileShape kTiles[] = {
    {64, 128, 128}, {64, 256, 64},        {64, 192, 128},      {128, 128, 128},
    {128, 192, 80}, {192, 128, 128, 128}, {192, 192, 80, 128}, {256, 128, 80},
};

}  // namespace prefill::hopper
