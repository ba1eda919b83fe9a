#include "Kernels/norms/bridge.h"

#include "Kernels/bridge/convert.h"
#include "Kernels/norms/lib.rs.h"
#include "Kernels/norms/norms.h"

namespace norms::bridge {
namespace {

using device::pointer;

Matrix matrix_of(const Norm& given) {
    return {static_cast<std::int64_t>(given.rows), device::narrow("columns", given.columns),
            given.dtype};
}

NormBackward backward_of(const Norm& given, norms::Norm norm, bool wide_weight) {
    return {matrix_of(given),
            pointer<void>(given.x),
            pointer<void>(given.weight),
            pointer<void>(given.out_gradient),
            pointer<float>(given.mean),
            pointer<float>(given.rstd),
            pointer<void>(given.x_gradient),
            {pointer<void>(given.weight_gradient), pointer<void>(given.bias_gradient)},
            /*partials=*/nullptr,
            wide_weight,
            norm};
}

// Calls `function` with the parameters of the operation.
template <class Function>
auto with_params(const Norm& given, Function&& function) {
    const Matrix matrix = matrix_of(given);
    void* x = pointer<void>(given.x);
    const void* weight = pointer<void>(given.weight);
    void* out = pointer<void>(given.out);
    float* mean = pointer<float>(given.mean);
    float* rstd = pointer<float>(given.rstd);
    const void* out_gradient = pointer<void>(given.out_gradient);
    void* logits = pointer<void>(given.logits);
    const auto* targets = pointer<std::int64_t>(given.targets);
    float* loss = pointer<float>(given.loss);
    float* lse = pointer<float>(given.lse);
    const bool wide = given.weight_dtype == device::Dtype::F32;
    switch (given.op) {
        case Op::RmsNormForward:
            return function(RmsNormForward{matrix, x, weight, out, rstd, wide, given.epsilon});
        case Op::FusedAddRmsNorm:
            return function(FusedAddRmsNorm{matrix, x, pointer<void>(given.residual), weight, wide,
                                            given.epsilon});
        case Op::LayerNormForward:
            return function(LayerNormForward{matrix, x, weight, pointer<void>(given.bias), out,
                                             mean, rstd, wide, given.epsilon});
        case Op::RmsNormBackward:
            return function(backward_of(given, norms::Norm::kRms, wide));
        case Op::LayerNormBackward:
            return function(backward_of(given, norms::Norm::kLayer, wide));
        case Op::SoftmaxForward:
            return function(SoftmaxForward{matrix, x, out});
        case Op::SoftmaxBackward:
            return function(
                SoftmaxBackward{matrix, out, out_gradient, pointer<void>(given.x_gradient)});
        case Op::CrossEntropyForward:
            return function(CrossEntropyForward{matrix, logits, targets, loss, lse});
        case Op::CrossEntropyBackward:
            return function(CrossEntropyBackward{matrix, logits, targets, lse,
                                                 pointer<float>(given.loss_gradient),
                                                 pointer<void>(given.logits_gradient)});
        case Op::CrossEntropyFused:
            return function(CrossEntropyFused{matrix, logits, targets, loss});
    }
    device::refuse("unknown operation");
}

}  // namespace

void check(const Norm& given, Variant) {
    norms::check(matrix_of(given));
    device::require(given.weight_dtype == device::Dtype::F32 || given.weight_dtype == given.dtype,
                    std::string("no ") + device::name_of(given.weight_dtype) + " weights with " +
                        device::name_of(given.dtype) + " activations; use f32 or the same type");
}

std::unique_ptr<Plan> plan(const Norm& given, Variant variant) {
    check(given, variant);
    return with_params(given, [&](const auto& params) { return device::plan(params, variant); });
}

}  // namespace norms::bridge
