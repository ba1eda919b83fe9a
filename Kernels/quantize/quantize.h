// FP8 e4m3 quantisation with a scale for each row, each 128 elements of a row, or each 128 x 128
// block, and its inverse.
//
//   scale      = max(largest |x| / 448, 2^-126) in fp32, each step to nearest; rounded up to a
//                power of two where it is stored as UE8M0
//   quantised  = e4m3(x * (1 / scale)), to nearest even, saturating
//   inverse    = quantised * scale
//
// Zeros, and values whose scale would be subnormal, have the scale 2^-126. A group that holds a NaN
// or an infinity gets the scale NaN, and all its elements become NaN.
//
// x is [rows, columns]; scales are [rows / group rows, columns / group columns], rounded up: the
// last groups may hold fewer elements.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "Kernels/device/dtype.h"

namespace quantize {

// Which elements share a scale; fp32 unless the name says UE8M0.
enum class Scaling { kRow, kGroup, kGroupUe8m0, kBlock };

constexpr int kGroup = 128;
// What `columns` must be a multiple of: rows of FP8 values then start at 16-byte boundaries.
constexpr int kColumnMultiple = 16;

struct Matrix {
    Scaling scaling;
    // Of what is quantised, or of the inverse.
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

// Throw std::invalid_argument for what they cannot do, std::runtime_error for what CUDA refuses.
void launch(const Quantize& params, cudaStream_t stream);
void launch(const Dequantize& params, cudaStream_t stream);

// One thread a group, and one an element: the references for whole tensors.
void launch_plain(const Quantize& params, cudaStream_t stream);
void launch_plain(const Dequantize& params, cudaStream_t stream);

}  // namespace quantize
