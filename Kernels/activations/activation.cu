#include <string>

#include "Kernels/activations/activation.h"
#include "Kernels/activations/stream.cuh"
#include "Kernels/device/dispatch.h"

namespace activations {
namespace {

void check_addresses(const Activation& params) {
    const bool gated = params.function == Function::SwiGlu || params.function == Function::GeGlu;
    const bool backward = params.pass == Pass::kBackward;
    const auto check = [](const char* name, const void* address, bool used) {
        if (used) return device::require_aligned(name, address);
        device::require(address == nullptr, std::string(name) + " is not used by this function");
    };
    check("first", params.first, true);
    check("second", params.second, gated);
    check("out_gradient", params.out_gradient, backward);
    check("first_out", params.first_out, true);
    check("second_out", params.second_out, gated && backward);
}

// From a sweep on an H200 (bf16, 67 and 235 million elements, 128 to 512 threads, 1 to 8 packets):
// small blocks are best or within 0.5 %; with one input, 4 packets per thread gain 1 %.
constexpr int kThreads = 128;
constexpr int kPacketsOfOneInput = 4;

template <class T, class Function, int kUnits>
device::Enqueue prepare_units(const StreamArguments& arguments) {
    constexpr int kPackets = Function::kInputs == 1 ? kPacketsOfOneInput / kUnits : 1;
    constexpr int kElements = kPackets * kUnits * device::kPerPacket<T>;
    return device::prepare("activation", stream_kernel<T, Function, kPackets, kUnits>,
                           device::cover(arguments.elements, kThreads, kElements), arguments);
}

template <class T, class Function>
device::Enqueue prepare_stream(const Activation& params) {
    StreamArguments arguments = {};
    int inputs = 0;
    for (const void* input : {params.first, params.second, params.out_gradient}) {
        if (input != nullptr) arguments.inputs[inputs++] = input;
    }
    arguments.outputs[0] = params.first_out;
    arguments.outputs[1] = params.second_out;
    arguments.elements = params.elements;
    return device::with_units(
        {params.first, params.second, params.out_gradient, params.first_out, params.second_out},
        [&](auto units) { return prepare_units<T, Function, units>(arguments); });
}

template <class T, class Forward, class Backward>
device::Enqueue prepare_pass(const Activation& params) {
    return params.pass == Pass::kForward ? prepare_stream<T, Forward>(params)
                                         : prepare_stream<T, Backward>(params);
}

}  // namespace

void check(const Activation& params) {
    device::require_activation(params.dtype);
    device::require(params.elements >= 1,
                    "elements is " + std::to_string(params.elements) + "; give at least 1");
}

device::Enqueue prepare(const Activation& params) {
    check(params);
    check_addresses(params);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        using T = decltype(element);
        switch (params.function) {
            case Function::Gelu:
                return prepare_pass<T, Forward<Gelu>, Backward<Gelu>>(params);
            case Function::GeluTanh:
                return prepare_pass<T, Forward<GeluTanh>, Backward<GeluTanh>>(params);
            case Function::SwiGlu:
                return prepare_pass<T, GatedForward<Silu>, GatedBackward<Silu>>(params);
            case Function::GeGlu:
                return prepare_pass<T, GatedForward<GeluTanh>, GatedBackward<GeluTanh>>(params);
        }
        device::refuse("unknown function");
    });
}

}  // namespace activations
