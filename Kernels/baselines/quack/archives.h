// The archives of Quack's kernels linked into this build, one per architecture.
#pragma once

#include "Kernels/baselines/cute/kernel.h"

namespace quack {

// The archive for devices of this compute capability, or an empty one if the build has none.
const cute_kernels::Archive& archive(int major);

}  // namespace quack
