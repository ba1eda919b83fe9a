// Requirements of both directions on their matrix.
#pragma once

#include <cstdint>
#include <string>

#include "Kernels/device/dispatch.h"
#include "Kernels/quantize/quantize.h"

namespace quantize {

using device::divide_up;

// Packets are counted in 31 bits.
constexpr std::int64_t kMaxPackets = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);

// The number of `packets` that a launch counts.
inline void check(const Matrix& matrix, std::int64_t packets) {
    const std::string size = std::to_string(matrix.rows) + "x" + std::to_string(matrix.columns);
    device::require_activation(matrix.dtype);
    device::require(matrix.rows >= 1 && matrix.columns >= 1,
                    "the matrix is " + size + "; at least 1x1 is required");
    // So that rows of FP8 values start at 16-byte boundaries.
    device::require(matrix.columns % 16 == 0, "columns is " + std::to_string(matrix.columns) +
                                                  "; a multiple of 16 is supported");
    device::require(packets <= kMaxPackets, "a matrix of " + size + " has too many elements");
}

}  // namespace quantize
