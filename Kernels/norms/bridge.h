// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/bridge/plan.h"
#include "Kernels/device/memory.h"
#include "rust/cxx.h"

namespace norms::bridge {

using device::Dtype;
enum class Variant : std::uint8_t;
struct Matrix;
struct RmsNormForward;
struct FusedAddRmsNorm;
struct LayerNormForward;
struct NormBackward;
struct SoftmaxForward;
struct SoftmaxBackward;
struct CrossEntropyForward;
struct CrossEntropyBackward;
struct CrossEntropyFused;

using Workspace = device::Memory;

void rmsnorm_forward(const RmsNormForward& tensors, const Matrix& matrix, Variant variant,
                     std::size_t stream);
void fused_add_rmsnorm(const FusedAddRmsNorm& tensors, const Matrix& matrix, Variant variant,
                       std::size_t stream);
void layernorm_forward(const LayerNormForward& tensors, const Matrix& matrix, Variant variant,
                       std::size_t stream);
std::unique_ptr<Workspace> allocate_workspace(const NormBackward& tensors, const Matrix& matrix,
                                              Variant variant);
void norm_backward(const NormBackward& tensors, const Matrix& matrix, Variant variant,
                   const Workspace& workspace, std::size_t stream);
void softmax_forward(const SoftmaxForward& tensors, const Matrix& matrix, Variant variant,
                     std::size_t stream);
void softmax_backward(const SoftmaxBackward& tensors, const Matrix& matrix, Variant variant,
                      std::size_t stream);
void cross_entropy_forward(const CrossEntropyForward& tensors, const Matrix& matrix,
                           Variant variant, std::size_t stream);
void cross_entropy_backward(const CrossEntropyBackward& tensors, const Matrix& matrix,
                            Variant variant, std::size_t stream);
void cross_entropy_fused(const CrossEntropyFused& tensors, const Matrix& matrix, Variant variant,
                         std::size_t stream);

}  // namespace norms::bridge
