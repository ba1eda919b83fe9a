#include "Kernels/activations/bridge.h"

#include "Kernels/activations/lib.rs.h"
#include "Kernels/bridge/convert.h"

namespace activations::bridge {
namespace {

using device::pointer;

activations::Activation params_of(const Activation& given) {
    return {given.function,
            given.backward ? Pass::kBackward : Pass::kForward,
            given.dtype,
            static_cast<std::int64_t>(given.elements),
            pointer<void>(given.first),
            pointer<void>(given.second),
            pointer<void>(given.out_gradient),
            pointer<void>(given.first_out),
            pointer<void>(given.second_out)};
}

activations::Packed params_of(const Packed& given) {
    return {given.gate,
            given.dtype,
            static_cast<std::int64_t>(given.rows),
            static_cast<std::int64_t>(given.columns),
            pointer<void>(given.input),
            pointer<void>(given.out)};
}

}  // namespace

void check(const Activation& given, Variant) { activations::check(params_of(given)); }

void check_packed(const Packed& given, Variant) { activations::check(params_of(given)); }

std::unique_ptr<Plan> plan(const Activation& given, Variant variant) {
    return device::plan(params_of(given), variant);
}

std::unique_ptr<Plan> plan_packed(const Packed& given, Variant variant) {
    return device::plan(params_of(given), variant);
}

}  // namespace activations::bridge
