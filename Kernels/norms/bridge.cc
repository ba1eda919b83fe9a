#include "Kernels/norms/bridge.h"

#include "Kernels/bridge/convert.h"
#include "Kernels/device/launch.h"
#include "Kernels/norms/cross_entropy_backward.h"
#include "Kernels/norms/cross_entropy_forward.h"
#include "Kernels/norms/cross_entropy_fused.h"
#include "Kernels/norms/fused_add_rmsnorm.h"
#include "Kernels/norms/layernorm_forward.h"
#include "Kernels/norms/lib.rs.h"
#include "Kernels/norms/norm_backward.h"
#include "Kernels/norms/rmsnorm_forward.h"
#include "Kernels/norms/softmax_backward.h"
#include "Kernels/norms/softmax_forward.h"

namespace norms::bridge {
namespace {

using device::narrow;
using device::pointer;

ElementType element_type(Dtype dtype) {
    device::require(dtype != Dtype::E4m3, "fp8_e4m3 is not supported; use f32, f16 or bf16");
    return static_cast<ElementType>(dtype);
}

// Fills the fields that every op's Params has.
template <class Params>
void set_shape(Params& params, const Matrix& matrix) {
    params.rows = static_cast<std::int64_t>(matrix.rows);
    params.columns = narrow("columns", matrix.columns);
    params.type = element_type(matrix.dtype);
}

template <class Params>
void launch_variant(Params& params, const Matrix& matrix, Variant variant, std::size_t stream) {
    set_shape(params, matrix);
    if (variant == Variant::Plain) {
        launch_plain(params, pointer<CUstream_st>(stream));
    } else {
        launch(params, pointer<CUstream_st>(stream));
    }
}

norms::NormBackward backward_params(const NormBackward& tensors, const Matrix& matrix) {
    norms::NormBackward params = {};
    params.norm = tensors.mean == 0 ? Norm::kRms : Norm::kLayer;
    params.x = pointer<void>(tensors.x);
    params.weight = pointer<void>(tensors.weight);
    params.out_gradient = pointer<void>(tensors.out_gradient);
    params.mean = pointer<float>(tensors.mean);
    params.rstd = pointer<float>(tensors.rstd);
    params.x_gradient = pointer<void>(tensors.x_gradient);
    params.weight_gradient = pointer<void>(tensors.weight_gradient);
    params.bias_gradient = pointer<void>(tensors.bias_gradient);
    params.weight_type = element_type(matrix.weight_dtype);
    set_shape(params, matrix);
    return params;
}

}  // namespace

void rmsnorm_forward(const RmsNormForward& tensors, const Matrix& matrix, Variant variant,
                     std::size_t stream) {
    norms::RmsNormForward params = {};
    params.x = pointer<void>(tensors.x);
    params.weight = pointer<void>(tensors.weight);
    params.out = pointer<void>(tensors.out);
    params.weight_type = element_type(matrix.weight_dtype);
    params.epsilon = tensors.epsilon;
    launch_variant(params, matrix, variant, stream);
}

void fused_add_rmsnorm(const FusedAddRmsNorm& tensors, const Matrix& matrix, Variant variant,
                       std::size_t stream) {
    norms::FusedAddRmsNorm params = {};
    params.x = pointer<void>(tensors.x);
    params.residual = pointer<void>(tensors.residual);
    params.weight = pointer<void>(tensors.weight);
    params.weight_type = element_type(matrix.weight_dtype);
    params.epsilon = tensors.epsilon;
    launch_variant(params, matrix, variant, stream);
}

void layernorm_forward(const LayerNormForward& tensors, const Matrix& matrix, Variant variant,
                       std::size_t stream) {
    norms::LayerNormForward params = {};
    params.x = pointer<void>(tensors.x);
    params.weight = pointer<void>(tensors.weight);
    params.bias = pointer<void>(tensors.bias);
    params.out = pointer<void>(tensors.out);
    params.weight_type = element_type(matrix.weight_dtype);
    params.epsilon = tensors.epsilon;
    launch_variant(params, matrix, variant, stream);
}

std::unique_ptr<Workspace> allocate_workspace(const NormBackward& tensors, const Matrix& matrix,
                                              Variant variant) {
    const norms::NormBackward params = backward_params(tensors, matrix);
    return std::make_unique<Workspace>(variant == Variant::Plain ? plain_workspace_bytes(params)
                                                                 : workspace_bytes(params));
}

void norm_backward(const NormBackward& tensors, const Matrix& matrix, Variant variant,
                   const Workspace& workspace, std::size_t stream) {
    norms::NormBackward params = backward_params(tensors, matrix);
    params.workspace = workspace.start();
    params.workspace_bytes = workspace.bytes();
    launch_variant(params, matrix, variant, stream);
}

void softmax_forward(const SoftmaxForward& tensors, const Matrix& matrix, Variant variant,
                     std::size_t stream) {
    norms::SoftmaxForward params = {};
    params.x = pointer<void>(tensors.x);
    params.out = pointer<void>(tensors.out);
    launch_variant(params, matrix, variant, stream);
}

void softmax_backward(const SoftmaxBackward& tensors, const Matrix& matrix, Variant variant,
                      std::size_t stream) {
    norms::SoftmaxBackward params = {};
    params.out = pointer<void>(tensors.out);
    params.out_gradient = pointer<void>(tensors.out_gradient);
    params.x_gradient = pointer<void>(tensors.x_gradient);
    launch_variant(params, matrix, variant, stream);
}

void cross_entropy_forward(const CrossEntropyForward& tensors, const Matrix& matrix,
                           Variant variant, std::size_t stream) {
    norms::CrossEntropyForward params = {};
    params.logits = pointer<void>(tensors.logits);
    params.targets = pointer<std::int64_t>(tensors.targets);
    params.loss = pointer<float>(tensors.loss);
    params.lse = pointer<float>(tensors.lse);
    launch_variant(params, matrix, variant, stream);
}

void cross_entropy_backward(const CrossEntropyBackward& tensors, const Matrix& matrix,
                            Variant variant, std::size_t stream) {
    norms::CrossEntropyBackward params = {};
    params.logits = pointer<void>(tensors.logits);
    params.targets = pointer<std::int64_t>(tensors.targets);
    params.lse = pointer<float>(tensors.lse);
    params.loss_gradient = pointer<float>(tensors.loss_gradient);
    params.logits_gradient = pointer<void>(tensors.logits_gradient);
    launch_variant(params, matrix, variant, stream);
}

void cross_entropy_fused(const CrossEntropyFused& tensors, const Matrix& matrix, Variant variant,
                         std::size_t stream) {
    norms::CrossEntropyFused params = {};
    params.logits = pointer<void>(tensors.logits);
    params.targets = pointer<std::int64_t>(tensors.targets);
    params.loss = pointer<float>(tensors.loss);
    launch_variant(params, matrix, variant, stream);
}

}  // namespace norms::bridge
