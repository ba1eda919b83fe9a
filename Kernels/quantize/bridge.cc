#include "Kernels/quantize/bridge.h"

#include "Kernels/bridge/convert.h"
#include "Kernels/quantize/lib.rs.h"

namespace quantize::bridge {
namespace {

using device::pointer;

// Calls `function` with a Quantize or a Dequantize, as requested.
template <class Function>
auto with_params(const Quantization& given, Function&& function) {
    const Matrix matrix = {given.scaling, given.dtype, static_cast<std::int64_t>(given.rows),
                           device::narrow("columns", given.columns)};
    void* x = pointer<void>(given.x);
    void* quantized = pointer<void>(given.quantized);
    void* scales = pointer<void>(given.scales);
    const float* tensor_scale = pointer<float>(given.tensor_scale);
    return given.inverse ? function(Dequantize{matrix, quantized, scales, x, tensor_scale})
                         : function(Quantize{matrix, x, quantized, scales, tensor_scale});
}

NormQuantize norm_params(const NormQuantization& given) {
    return {{given.scaling, given.dtype, static_cast<std::int64_t>(given.rows),
             device::narrow("columns", given.columns)},
            pointer<void>(given.x),
            pointer<void>(given.weight),
            given.epsilon,
            pointer<void>(given.quantized),
            pointer<void>(given.scales),
            pointer<float>(given.tensor_scale)};
}

}  // namespace

void check(const Quantization& given, Variant) {
    with_params(given, [](const auto& params) { quantize::check(params); });
}

std::unique_ptr<Plan> plan(const Quantization& given, Variant variant) {
    return with_params(given, [&](const auto& params) { return device::plan(params, variant); });
}

void check_norm(const NormQuantization& given, Variant) { quantize::check(norm_params(given)); }

std::unique_ptr<Plan> plan_norm(const NormQuantization& given, Variant variant) {
    return device::plan(norm_params(given), variant);
}

}  // namespace quantize::bridge
