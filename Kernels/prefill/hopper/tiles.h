// The tiles that Hopper's kernel is built with.
#pragma once

#include "Kernels/prefill/config.h"

namespace prefill::hopper {

inline constexpr TileShape kTiles[] = {{64, 128, 128}, {128, 128, 128}};

}  // namespace prefill::hopper
