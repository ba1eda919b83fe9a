// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace quantize::bridge {

struct Matrix;
enum class Variant : std::uint8_t;

void quantize(const Matrix& matrix, std::size_t x, std::size_t quantized, std::size_t scales,
              Variant variant, std::size_t stream);
void dequantize(const Matrix& matrix, std::size_t quantized, std::size_t scales, std::size_t out,
                Variant variant, std::size_t stream);

}  // namespace quantize::bridge
