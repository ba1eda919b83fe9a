// FP8 e4m3 quantisation with one scale per row, per 128 elements of a row, or per 128 x 128 block,
// and its inverse.
//
//   scale      = max(largest |x| / 448, 2^-126) in fp32, each step to nearest; rounded up to a
//                power of two if stored as UE8M0
//   quantized  = e4m3(x * (1 / scale)), to nearest even, saturating
//   inverse    = quantized * scale
//
// Zeros, and values whose scale would be subnormal, have the scale 2^-126. A group that holds a NaN
// or an infinity gets the scale NaN, and all its elements become NaN.
//
// x is [rows, columns]; scales are [rows / group rows, columns / group columns], rounded up: the
// last groups may hold fewer elements.
#pragma once

#include <cstdint>

#include "Kernels/device/dtype.h"
#include "Kernels/device/launch.h"

namespace quantize {

// Which elements share a scale; fp32 unless the name says UE8M0. Shared with Rust.
enum class Scaling : std::int32_t { Row, Group, GroupUe8m0, Block };

constexpr int kGroup = 128;

struct Matrix {
    Scaling scaling;
    // The type of the input, or of the inverse's output.
    device::Dtype dtype;
    std::int64_t rows;
    int columns;
};

struct Quantize {
    Matrix matrix;
    const void* x;
    void* quantized;
    void* scales;
};

struct Dequantize {
    Matrix matrix;
    const void* quantized;
    const void* scales;
    void* out;
};

// Throw std::invalid_argument for a shape or type that the kernels do not support.
void check(const Quantize& params);
void check(const Dequantize& params);

// These check addresses too.
device::Enqueue prepare(const Quantize& params);
device::Enqueue prepare(const Dequantize& params);

// One thread per group, and one per element: the references for whole tensors.
device::Enqueue prepare_plain(const Quantize& params);
device::Enqueue prepare_plain(const Dequantize& params);

}  // namespace quantize
