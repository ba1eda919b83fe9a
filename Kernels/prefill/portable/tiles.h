// The tiles that the portable kernel is built with.
#pragma once

#include "Kernels/prefill/config.h"

namespace prefill::portable {

// With the large head, scores of 64 keys would leave too few registers for prefetching.
inline constexpr TileShape kTiles[] = {{64, 128, 64}, {128, 128, 48}};

}  // namespace prefill::portable
