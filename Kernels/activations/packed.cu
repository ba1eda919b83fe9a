// Gated activations of rows that hold gate and up back to back.
#include <limits>
#include <string>

#include "Kernels/activations/activation.h"
#include "Kernels/activations/units.cuh"
#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/divider.h"
#include "Kernels/device/ptx/memory.cuh"

namespace activations {
namespace {

constexpr int kThreads = 128;

// One output packet per thread; an output row has `width` packets.
template <class T, class Unit>
__global__ void __launch_bounds__(kThreads)
    packed_kernel(const uint4* input, uint4* out, device::Divider rows, std::uint32_t width,
                  std::uint32_t packets) {
    constexpr int kPer = device::kPerPacket<T>;
    const std::uint32_t index = blockIdx.x * kThreads + threadIdx.x;
    if (index >= packets) return;
    // Each earlier row has another half of its packets in the input.
    const std::int64_t first = std::int64_t{index} + rows.times(rows.quotient(index));
    const uint4 loaded[2] = {device::ptx::load_16(input + first),
                             device::ptx::load_16(input + first + width)};
    float gates[kPer];
    float ups[kPer];
    device::unpack<T>(loaded[0], gates);
    device::unpack<T>(loaded[1], ups);
#pragma unroll
    for (int element = 0; element < kPer; ++element) {
        gates[element] = Unit::value(gates[element]) * ups[element];
    }
    device::ptx::store_16(out + index, device::pack<T>(gates));
}

// Rows that are not whole packets.
template <class T, class Unit>
__global__ void __launch_bounds__(kThreads)
    packed_elements_kernel(const T* input, T* out, std::int64_t columns, std::int64_t elements) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (index >= elements) return;
    const std::int64_t first = index + index / columns * columns;
    const float gate = Unit::value(device::to_float(input[first]));
    out[index] = device::from_float<T>(gate * device::to_float(input[first + columns]));
}

template <class T, class Unit>
device::Enqueue prepare_unit(const Packed& params) {
    const std::int64_t elements = params.rows * params.columns;
    if (params.columns % device::kPerPacket<T> != 0) {
        return device::prepare("packed_elements", packed_elements_kernel<T, Unit>,
                               device::cover(elements, kThreads),
                               static_cast<const T*>(params.input), static_cast<T*>(params.out),
                               params.columns, elements);
    }
    const std::int64_t packets = elements / device::kPerPacket<T>;
    const std::int64_t width = params.columns / device::kPerPacket<T>;
    device::require(packets <= std::numeric_limits<int>::max(), "more than 2^31 packets");
    return device::prepare("packed", packed_kernel<T, Unit>, device::cover(packets, kThreads),
                           static_cast<const uint4*>(params.input), static_cast<uint4*>(params.out),
                           device::Divider(width), static_cast<std::uint32_t>(width),
                           static_cast<std::uint32_t>(packets));
}

}  // namespace

void check(const Packed& params) {
    device::require_activation(params.dtype);
    device::require(params.rows >= 1 && params.columns >= 1,
                    std::to_string(params.rows) + " x " + std::to_string(params.columns) +
                        " elements; give at least 1 of each");
}

device::Enqueue prepare(const Packed& params) {
    check(params);
    device::require_aligned("input", params.input);
    device::require_aligned("out", params.out);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        using T = decltype(element);
        switch (params.gate) {
            case Gate::Silu:
                return prepare_unit<T, Silu>(params);
            case Gate::GeluTanh:
                return prepare_unit<T, GeluTanh>(params);
            case Gate::Gelu:
                return prepare_unit<T, Gelu>(params);
        }
        device::refuse("unknown gate");
    });
}

}  // namespace activations
