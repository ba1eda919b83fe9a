// What both directions ask of their matrix.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "Kernels/device/dispatch.h"
#include "Kernels/device/integers.h"
#include "Kernels/quantize/quantize.h"

namespace quantize {

// Packets are counted in 31 bits.
constexpr std::int64_t kMaxPackets = (std::int64_t{1} << 31) - (std::int64_t{1} << 16);

using device::divide_up;

// `packets` that a launch counts.
inline void check(const Matrix& matrix, std::int64_t packets) {
    if (matrix.rows < 1 || matrix.columns < 1) {
        throw std::invalid_argument("the matrix is " + std::to_string(matrix.rows) + "x" +
                                    std::to_string(matrix.columns) + "; give at least 1x1");
    }
    if (matrix.columns % kColumnMultiple != 0) {
        throw std::invalid_argument("columns is " + std::to_string(matrix.columns) +
                                    "; a multiple of 16 is supported");
    }
    if (packets > kMaxPackets) {
        throw std::invalid_argument("a matrix of " + std::to_string(matrix.rows) + "x" +
                                    std::to_string(matrix.columns) + " has too many elements");
    }
}

}  // namespace quantize
