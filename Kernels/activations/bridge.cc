#include "Kernels/activations/bridge.h"

#include <stdexcept>

#include "Kernels/activations/activation.h"
#include "Kernels/activations/lib.rs.h"
#include "Kernels/bridge/convert.h"

namespace activations::bridge {
namespace {

using device::pointer;

activations::Function function_of(Function function) {
    switch (function) {
        case Function::Gelu:
            return activations::Function::kGelu;
        case Function::GeluTanh:
            return activations::Function::kGeluTanh;
        case Function::SwiGlu:
            return activations::Function::kSwiGlu;
        case Function::GeGlu:
            return activations::Function::kGeGlu;
    }
    throw std::invalid_argument("unknown function");
}

activations::Gate gate_of(Gate gate) {
    switch (gate) {
        case Gate::Silu:
            return activations::Gate::kSilu;
        case Gate::GeluTanh:
            return activations::Gate::kGeluTanh;
        case Gate::Gelu:
            return activations::Gate::kGelu;
    }
    throw std::invalid_argument("unknown gate");
}

}  // namespace

void launch(const Activation& activation, Variant variant, std::size_t stream) {
    activations::Activation params = {};
    params.function = function_of(activation.function);
    params.pass = activation.backward ? Pass::kBackward : Pass::kForward;
    params.dtype = activation.dtype;
    params.elements = static_cast<std::int64_t>(activation.elements);
    params.first = pointer<void>(activation.first);
    params.second = pointer<void>(activation.second);
    params.out_gradient = pointer<void>(activation.out_gradient);
    params.first_out = pointer<void>(activation.first_out);
    params.second_out = pointer<void>(activation.second_out);
    const auto cuda_stream = pointer<CUstream_st>(stream);
    if (variant == Variant::Plain) {
        activations::launch_plain(params, cuda_stream);
    } else {
        activations::launch(params, cuda_stream);
    }
}

void packed(const Packed& packed, Variant variant, std::size_t stream) {
    activations::Packed params = {};
    params.gate = gate_of(packed.gate);
    params.dtype = packed.dtype;
    params.rows = static_cast<std::int64_t>(packed.rows);
    params.columns = static_cast<std::int64_t>(packed.columns);
    params.input = pointer<void>(packed.input);
    params.out = pointer<void>(packed.out);
    const auto cuda_stream = pointer<CUstream_st>(stream);
    if (variant == Variant::Plain) {
        activations::launch_plain(params, cuda_stream);
    } else {
        activations::launch(params, cuda_stream);
    }
}

}  // namespace activations::bridge
