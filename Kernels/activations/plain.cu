// Naive on purpose: the reference for whole tensors.
#include <cstdint>

#include "Kernels/activations/activation.h"
#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"

namespace activations {
namespace {

constexpr int kThreads = 256;
constexpr float kSqrt2OverPi = 0.79788456080286536f;
constexpr float kCubic = 0.044715f;

__device__ float value(Function function, float x) {
    switch (function) {
        case Function::Gelu:
            return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
        case Function::SwiGlu:
            return x / (1.0f + expf(-x));
        default:
            return 0.5f * x * (1.0f + tanhf(kSqrt2OverPi * (x + kCubic * x * x * x)));
    }
}

__device__ float slope(Function function, float x) {
    switch (function) {
        case Function::Gelu:
            return 0.5f * (1.0f + erff(x * 0.70710678118654752f)) +
                   x * 0.39894228040143268f * expf(-0.5f * x * x);
        case Function::SwiGlu: {
            const float share = 1.0f / (1.0f + expf(-x));
            return share * (1.0f + x * (1.0f - share));
        }
        default: {
            const float tanh = tanhf(kSqrt2OverPi * (x + kCubic * x * x * x));
            return 0.5f * (1.0f + tanh) +
                   0.5f * x * (1.0f - tanh * tanh) * kSqrt2OverPi * (1.0f + 3.0f * kCubic * x * x);
        }
    }
}

template <class T>
__global__ void activation_plain_kernel(const __grid_constant__ Activation params) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= params.elements) return;
    const auto read = [&](const void* tensor) {
        return device::to_float(static_cast<const T*>(tensor)[index]);
    };
    const auto write = [&](void* tensor, float result) {
        static_cast<T*>(tensor)[index] = device::from_float<T>(result);
    };
    const float x = read(params.first);
    if (params.pass == Pass::kForward) {
        const float other = params.second == nullptr ? 1.0f : read(params.second);
        write(params.first_out, value(params.function, x) * other);
        return;
    }
    const float gradient = read(params.out_gradient);
    const float other = params.second == nullptr ? 1.0f : read(params.second);
    write(params.first_out, gradient * other * slope(params.function, x));
    if (params.second_out != nullptr) {
        write(params.second_out, gradient * value(params.function, x));
    }
}

Function function_of(Gate gate) {
    switch (gate) {
        case Gate::Silu:
            return Function::SwiGlu;
        case Gate::GeluTanh:
            return Function::GeluTanh;
        case Gate::Gelu:
            return Function::Gelu;
    }
    device::refuse("unknown gate");
}

template <class T>
__global__ void packed_plain_kernel(const __grid_constant__ Packed params, Function function) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= params.rows * params.columns) return;
    const T* row =
        static_cast<const T*>(params.input) + index / params.columns * 2 * params.columns;
    const std::int64_t column = index % params.columns;
    const float gate = device::to_float(row[column]);
    const float up = device::to_float(row[params.columns + column]);
    static_cast<T*>(params.out)[index] = device::from_float<T>(value(function, gate) * up);
}

}  // namespace

device::Enqueue prepare_plain(const Packed& params) {
    check(params);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        return device::prepare("packed_plain", packed_plain_kernel<decltype(element)>,
                               device::cover(params.rows * params.columns, kThreads), params,
                               function_of(params.gate));
    });
}

device::Enqueue prepare_plain(const Activation& params) {
    check(params);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        return device::prepare("activation_plain", activation_plain_kernel<decltype(element)>,
                               device::cover(params.elements, kThreads), params);
    });
}

}  // namespace activations
