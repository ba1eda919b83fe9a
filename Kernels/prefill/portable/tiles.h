// The tiles that the portable kernel is built with.
#pragma once

#include "Kernels/prefill/config.h"

namespace prefill::portable {

// With heads of 128, scores of 64 keys would leave too few registers for prefetching. Larger heads
// are bounded by the 99 KB of shared memory that a block has on consumer devices.
inline constexpr TileShape kTiles[] = {
    {64, 128, 64}, {128, 128, 48}, {192, 128, 32, 128}, {256, 64, 32}};

}  // namespace prefill::portable
