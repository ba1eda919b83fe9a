// The archives of FlashAttention-4's kernels that this build links, one for each architecture it is
// for.
#pragma once

#include "Kernels/baselines/cute/kernel.h"

namespace flash_attention {

// The archive for devices of this compute capability, or one without kernels where the build has
// none.
const cute_kernels::Archive& archive(int major);

}  // namespace flash_attention
