// Gated activations of rows that hold gate and up one behind the other.
#include <limits>
#include <string>

#include "Kernels/activations/activation.h"
#include "Kernels/activations/units.cuh"
#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/divider.h"
#include "Kernels/device/integers.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/ptx/memory.cuh"

namespace activations {
namespace {

constexpr int kThreads = 128;

// One packet of the output a thread; a row of it has `width` packets.
template <class T, class Unit>
__global__ void __launch_bounds__(kThreads)
    packed_kernel(const uint4* input, uint4* out, device::Divider rows, std::uint32_t width,
                  std::uint32_t packets) {
    constexpr int kPer = device::kPerPacket<T>;
    const std::uint32_t index = blockIdx.x * kThreads + threadIdx.x;
    if (index >= packets) return;
    // Every row before this one has another half of packets in the input.
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

// Rows that are no whole packets.
template <class T, class Unit>
__global__ void __launch_bounds__(kThreads)
    packed_elements_kernel(const T* input, T* out, std::int64_t columns, std::int64_t elements) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (index >= elements) return;
    const std::int64_t first = index + index / columns * columns;
    const float gate = Unit::value(device::to_float(input[first]));
    out[index] = device::from_float<T>(gate * device::to_float(input[first + columns]));
}

dim3 blocks_for(std::int64_t items) {
    if (items > std::numeric_limits<int>::max()) {
        throw std::invalid_argument(std::to_string(items) + " are too many for one launch");
    }
    return dim3(static_cast<unsigned>(device::divide_up(items, kThreads)));
}

template <class T, class Unit>
void launch_unit(const Packed& params, cudaStream_t stream) {
    device::Launch shape;
    shape.block = dim3(kThreads);
    const std::int64_t elements = params.rows * params.columns;
    if (params.columns % device::kPerPacket<T> != 0) {
        shape.grid = blocks_for(elements);
        return device::launch("packed_elements", packed_elements_kernel<T, Unit>, shape, stream,
                              static_cast<const T*>(params.input), static_cast<T*>(params.out),
                              params.columns, elements);
    }
    const std::int64_t packets = elements / device::kPerPacket<T>;
    shape.grid = blocks_for(packets);
    const std::int64_t width = params.columns / device::kPerPacket<T>;
    device::launch("packed", packed_kernel<T, Unit>, shape, stream,
                   static_cast<const uint4*>(params.input), static_cast<uint4*>(params.out),
                   device::Divider(width), static_cast<std::uint32_t>(width),
                   static_cast<std::uint32_t>(packets));
}

}  // namespace

void launch(const Packed& params, cudaStream_t stream) {
    if (params.rows < 1 || params.columns < 1) {
        throw std::invalid_argument(std::to_string(params.rows) + " x " +
                                    std::to_string(params.columns) +
                                    " elements; give at least 1 of each");
    }
    device::require_aligned("input", params.input);
    device::require_aligned("out", params.out);
    device::dispatch_activations(params.dtype, [&](auto element) {
        using T = decltype(element);
        switch (params.gate) {
            case Gate::kSilu:
                return launch_unit<T, Silu>(params, stream);
            case Gate::kGeluTanh:
                return launch_unit<T, GeluTanh>(params, stream);
            case Gate::kGelu:
                return launch_unit<T, Gelu>(params, stream);
        }
        throw std::invalid_argument("unknown gate");
    });
}

}  // namespace activations
