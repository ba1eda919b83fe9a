// The tiles that Blackwell's kernel is built with: two of 128 queries each, or one where the sums
// of two would fill tensor memory.
#pragma once

#include "Kernels/prefill/config.h"

namespace prefill::blackwell {

inline constexpr TileShape kTiles[] = {
    {64, 256, 128}, {128, 256, 128}, {192, 256, 128, 128}, {256, 128, 128}};

}  // namespace prefill::blackwell
