#include "Kernels/norms/bridge.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "Kernels/bridge/convert.h"
#include "Kernels/norms/lib.rs.h"
#include "Kernels/norms/norms.h"

namespace norms::bridge {
namespace {

// What was given, in the terms of norms.h.
struct Given {
    const Norm& norm;

    Matrix matrix() const {
        return {static_cast<std::int64_t>(norm.rows), device::narrow("columns", norm.columns),
                norm.dtype};
    }

    bool wide_weight() const { return norm.weight_dtype == device::Dtype::F32; }

    template <class T = void>
    T* optional(const char* name) const {
        for (const Tensor& tensor : norm.tensors) {
            if (std::string(tensor.name) == name) return device::pointer<T>(tensor.address);
        }
        return nullptr;
    }

    template <class T = void>
    T* tensor(const char* name) const {
        T* found = optional<T>(name);
        device::require(found != nullptr, norm.op, " needs the tensor ", name);
        return found;
    }

    NormBackward backward(norms::Norm kind) const {
        const bool layer = kind == norms::Norm::kLayer;
        return {matrix(),
                tensor("x"),
                tensor("weight"),
                tensor("out_gradient"),
                layer ? tensor<float>("mean") : nullptr,
                tensor<float>("rstd"),
                tensor("x_gradient"),
                {tensor("weight_gradient"), layer ? tensor("bias_gradient") : nullptr},
                /*partials=*/nullptr,
                wide_weight(),
                kind};
    }
};

struct Op {
    const char* name;
    std::unique_ptr<Plan> (*plan)(const Given& given, Variant variant);
};

constexpr Op kOps[] = {
    {"rmsnorm_fwd",
     [](const Given& given, Variant variant) {
         return device::plan(
             RmsNormForward{given.matrix(), given.tensor("x"), given.tensor("weight"),
                            given.tensor("out"), given.optional<float>("rstd"), given.wide_weight(),
                            given.norm.epsilon},
             variant);
     }},
    {"rmsnorm_bwd",
     [](const Given& given, Variant variant) {
         return device::plan(given.backward(norms::Norm::kRms), variant);
     }},
    {"fused_add_rmsnorm",
     [](const Given& given, Variant variant) {
         return device::plan(
             FusedAddRmsNorm{given.matrix(), given.tensor("x"), given.tensor("residual"),
                             given.tensor("weight"), given.wide_weight(), given.norm.epsilon},
             variant);
     }},
    {"layernorm_fwd",
     [](const Given& given, Variant variant) {
         return device::plan(
             LayerNormForward{given.matrix(), given.tensor("x"), given.tensor("weight"),
                              given.tensor("bias"), given.tensor("out"),
                              given.optional<float>("mean"), given.optional<float>("rstd"),
                              given.wide_weight(), given.norm.epsilon},
             variant);
     }},
    {"layernorm_bwd",
     [](const Given& given, Variant variant) {
         return device::plan(given.backward(norms::Norm::kLayer), variant);
     }},
    {"softmax_fwd",
     [](const Given& given, Variant variant) {
         return device::plan(SoftmaxForward{given.matrix(), given.tensor("x"), given.tensor("out")},
                             variant);
     }},
    {"softmax_bwd",
     [](const Given& given, Variant variant) {
         return device::plan(
             SoftmaxBackward{given.matrix(), given.tensor("out"), given.tensor("out_gradient"),
                             given.tensor("x_gradient")},
             variant);
     }},
    {"cross_entropy_fwd",
     [](const Given& given, Variant variant) {
         return device::plan(
             CrossEntropyForward{given.matrix(), given.tensor("logits"),
                                 given.tensor<std::int64_t>("target"), given.tensor<float>("loss"),
                                 given.tensor<float>("lse")},
             variant);
     }},
    {"cross_entropy_bwd",
     [](const Given& given, Variant variant) {
         return device::plan(
             CrossEntropyBackward{given.matrix(), given.tensor("logits"),
                                  given.tensor<std::int64_t>("target"), given.tensor<float>("lse"),
                                  given.tensor<float>("loss_gradient"),
                                  given.tensor("logits_gradient")},
             variant);
     }},
    {"cross_entropy_fwd_bwd",
     [](const Given& given, Variant variant) {
         return device::plan(
             CrossEntropyFused{given.matrix(), given.tensor("logits"),
                               given.tensor<std::int64_t>("target"), given.tensor<float>("loss")},
             variant);
     }},
};

const Op& op_named(const rust::String& name) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps),
                                  [&](const Op& op) { return std::string(name) == op.name; });
    device::require(op != std::end(kOps), "no kernel for ", name);
    return *op;
}

}  // namespace

void check(const Norm& given, Variant) {
    op_named(given.op);
    norms::check(Given{given}.matrix());
    device::require(given.weight_dtype == device::Dtype::F32 || given.weight_dtype == given.dtype,
                    "no ", device::name_of(given.weight_dtype), " weights with ",
                    device::name_of(given.dtype), " activations; use f32 or the same type");
}

std::unique_ptr<Plan> plan(const Norm& given, Variant variant) {
    check(given, variant);
    return op_named(given.op).plan(Given{given}, variant);
}

}  // namespace norms::bridge
