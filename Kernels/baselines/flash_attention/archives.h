// The archives of FlashAttention-4's kernels linked into this build, one per architecture.
#pragma once

#include "Kernels/baselines/cute/kernel.h"

namespace flash_attention {

// The archive for devices of this compute capability, or an empty one if the build has none.
const cute_kernels::Archive& archive(int major);

}  // namespace flash_attention
