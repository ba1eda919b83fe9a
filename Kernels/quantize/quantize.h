// FP8 e4m3 quantisation with one scale per row, per 128 or 32 elements of a row, or per 128 x 128
// block; NVFP4 and MXFP4 quantisation with one scale per 16 and per 32 elements of a row; and their
// inverses.
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
//
// MXFP8 is the above with UE8M0 scales of 32 elements: rounded up, as cuBLAS does, where the OCP
// specification rounds down and saturates. NVFP4 has e2m1 elements, two per byte, and e4m3 scales
// relative to a scale of the whole tensor, a positive normal fp32 that is an input:
//
//   scale      = e4m3(largest |x| / 6 / tensor scale), saturating
//   quantized  = e2m1(x * (1 / (scale * tensor scale))), e2m1(x * 0) if the scale is 0
//   inverse    = quantized * (scale * tensor scale)
//
// MXFP4 has such elements with UE8M0 scales of 32, rounded up like those of MXFP8:
//
//   scale      = max(largest |x| / 6, 2^-126), rounded up to a power of two
//   quantized  = e2m1(x * (1 / scale))
//   inverse    = quantized * scale
//
// e2m1 has no NaN: a group that holds a NaN or an infinity gets the scale NaN, and all its elements
// become +6. The scales of all three lie in tiles (device/scale_tiles.h), whose padding is zero.
//
// RMSNorm and quantisation in one, with one fp32 scale per 128 elements of a row, to MXFP8 or to
// NVFP4: x is above
//
//   x * (1 / sqrt(mean of x^2 in the row + epsilon)) * weight
//
// in fp32. With fp32 scales the last bits depend on the order of the sum. A scale that is rounded
// may double with such a bit: for MXFP8 and NVFP4 the inverse of the root is computed in fp64 and
// rounded once, and the products are in the order above, each to nearest.
#pragma once

#include <cstdint>

#include "Kernels/device/dtype.h"
#include "Kernels/device/launch.h"

namespace quantize {

// Which elements share a scale; fp32 unless the name says UE8M0. Shared with Rust.
enum class Scaling : std::int32_t { Row, Group, GroupUe8m0, Block, Mxfp8, Nvfp4, Mxfp4 };

constexpr int kGroup = 128;

// Whether the scales lie in tiles, and the elements of a row that then share one.
constexpr bool is_tiled(Scaling scaling) {
    return scaling == Scaling::Mxfp8 || scaling == Scaling::Nvfp4 || scaling == Scaling::Mxfp4;
}
constexpr int tiled_group(Scaling scaling) { return scaling == Scaling::Nvfp4 ? 16 : 32; }

// Whether the elements are e2m1, two per byte.
constexpr bool is_paired(Scaling scaling) {
    return scaling == Scaling::Nvfp4 || scaling == Scaling::Mxfp4;
}

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
    const float* tensor_scale;  // NVFP4 only
};

struct Dequantize {
    Matrix matrix;
    const void* quantized;
    const void* scales;
    void* out;
    const float* tensor_scale;  // NVFP4 only
};

struct NormQuantize {
    Matrix matrix;       // with scaling Group, Mxfp8 or Nvfp4
    const void* x;       // [rows, columns]
    const void* weight;  // [columns], of the type of x
    float epsilon;
    void* quantized;
    void* scales;
    const float* tensor_scale;  // NVFP4 only
};

// Throw std::invalid_argument for a shape or type that the kernels do not support.
void check(const Quantize& params);
void check(const Dequantize& params);
void check(const NormQuantize& params);

// These check addresses too.
device::Enqueue prepare(const Quantize& params);
device::Enqueue prepare(const Dequantize& params);
device::Enqueue prepare(const NormQuantize& params);

// One thread per group, one per element, and one block per row: the references for whole tensors.
device::Enqueue prepare_plain(const Quantize& params);
device::Enqueue prepare_plain(const Dequantize& params);
device::Enqueue prepare_plain(const NormQuantize& params);

}  // namespace quantize
