#include "Kernels/activations/bridge.h"

#include <stdexcept>

#include "Kernels/activations/activation.h"
#include "Kernels/activations/lib.rs.h"

namespace activations::bridge {
namespace {

device::ElementType element_type(Dtype dtype) {
    switch (dtype) {
        case Dtype::F32:
            return device::ElementType::kF32;
        case Dtype::F16:
            return device::ElementType::kF16;
        case Dtype::Bf16:
            return device::ElementType::kBf16;
    }
    throw std::invalid_argument("unknown dtype");
}

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

void* pointer(std::size_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

void launch(const Activation& activation, Variant variant, std::size_t stream) {
    activations::Activation params = {};
    params.function = function_of(activation.function);
    params.pass = activation.backward ? Pass::kBackward : Pass::kForward;
    params.type = element_type(activation.dtype);
    params.elements = static_cast<std::int64_t>(activation.elements);
    params.first = pointer(activation.first);
    params.second = pointer(activation.second);
    params.out_gradient = pointer(activation.out_gradient);
    params.first_out = pointer(activation.first_out);
    params.second_out = pointer(activation.second_out);
    const auto cuda_stream = reinterpret_cast<cudaStream_t>(stream);
    if (variant == Variant::Plain) {
        activations::launch_plain(params, cuda_stream);
    } else {
        activations::launch(params, cuda_stream);
    }
}

void packed(const Packed& packed, Variant variant, std::size_t stream) {
    activations::Packed params = {};
    params.gate = gate_of(packed.gate);
    params.type = element_type(packed.dtype);
    params.rows = static_cast<std::int64_t>(packed.rows);
    params.columns = static_cast<std::int64_t>(packed.columns);
    params.input = pointer(packed.input);
    params.out = pointer(packed.out);
    const auto cuda_stream = reinterpret_cast<cudaStream_t>(stream);
    if (variant == Variant::Plain) {
        activations::launch_plain(params, cuda_stream);
    } else {
        activations::launch(params, cuda_stream);
    }
}

}  // namespace activations::bridge
