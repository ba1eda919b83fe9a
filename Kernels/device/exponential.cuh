// e^x from the special-function unit.
#pragma once

#include "Kernels/device/ptx/math.cuh"

namespace device {

constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kLn2 = 0.693147180559945309417f;

// Exactly 1 for 0. The relative error is about 2^-22 and grows with |x|, as that of x does.
__device__ __forceinline__ float exp_fast(float x) { return ptx::exp2_fast(x * kLog2E); }

}  // namespace device
