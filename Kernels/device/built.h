// The architectures this program was built with, for CUDA sources; see cuda_kernels().
#pragma once

#include "Kernels/device/machine.h"

namespace device {

constexpr bool built(Arch arch) {
#ifdef H2H_BUILT_HOPPER
    if (arch == Arch::kHopper) return true;
#endif
#ifdef H2H_BUILT_BLACKWELL
    if (arch == Arch::kBlackwell) return true;
#endif
    return arch == Arch::kPortable;
}

}  // namespace device
