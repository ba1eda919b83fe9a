// e^x from the special-function unit.
#pragma once

#include "Kernels/device/ptx/math.cuh"

namespace device {

// Exactly 1 for 0. The relative error is about 2^-22 and grows with |x|, as that of x itself does.
__device__ __forceinline__ float exp_fast(float x) {
    constexpr float kLog2E = 1.44269504088896340736f;
    return ptx::exp2_fast(x * kLog2E);
}

}  // namespace device
