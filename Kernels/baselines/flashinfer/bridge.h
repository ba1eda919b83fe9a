// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rust/cxx.h"

namespace fi::bridge {

enum class Dtype : std::uint8_t;
struct Matrix;
struct RmsNorm;
struct FusedAddRmsNorm;
struct LayerNorm;

void rmsnorm(const RmsNorm& tensors, const Matrix& matrix, std::size_t stream);
void fused_add_rmsnorm(const FusedAddRmsNorm& tensors, const Matrix& matrix, std::size_t stream);
void layernorm(const LayerNorm& tensors, const Matrix& matrix, std::size_t stream);

}  // namespace fi::bridge
