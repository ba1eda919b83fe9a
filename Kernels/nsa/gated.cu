// The sum of the branches, each multiplied by a gate per row: memory-bound.
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/nsa/check.h"

namespace nsa {
namespace {

constexpr int kThreads = 256;
// 16-byte packets that a thread has in flight in each of the three outputs.
constexpr int kDepth = 2;

template <class T>
__global__ void __launch_bounds__(kThreads)
    gated_kernel(const __grid_constant__ Gated params, std::int64_t packets, int per_row) {
    constexpr int kWidth = device::kPerPacket<T>;
    const std::int64_t first =
        static_cast<std::int64_t>(blockIdx.x) * (kThreads * kDepth) + threadIdx.x;
    uint4 outputs[kDepth][3];
    float gates[kDepth][3];
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
        const std::int64_t packet = first + step * kThreads;
        if (packet >= packets) break;
        const std::int64_t row = packet / per_row;
#pragma unroll
        for (int branch = 0; branch < 3; ++branch) {
            outputs[step][branch] =
                __ldg(static_cast<const uint4*>(params.outputs[branch]) + packet);
            gates[step][branch] =
                device::to_float(static_cast<const T*>(params.gates[branch])[row]);
        }
    }
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
        const std::int64_t packet = first + step * kThreads;
        if (packet >= packets) break;
        float sums[kWidth] = {};
#pragma unroll
        for (int branch = 0; branch < 3; ++branch) {
            float values[kWidth];
            device::unpack<T>(outputs[step][branch], values);
#pragma unroll
            for (int element = 0; element < kWidth; ++element) {
                sums[element] = fmaf(gates[step][branch], values[element], sums[element]);
            }
        }
        static_cast<uint4*>(params.out)[packet] = device::pack<T>(sums);
    }
}

template <class T>
__global__ void gated_plain_kernel(const __grid_constant__ Gated params, std::int64_t elements) {
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index >= elements) return;
    float sum = 0.0f;
    for (int branch = 0; branch < 3; ++branch) {
        sum += device::to_float(static_cast<const T*>(params.gates[branch])[index / params.dim]) *
               device::to_float(static_cast<const T*>(params.outputs[branch])[index]);
    }
    static_cast<T*>(params.out)[index] = device::from_float<T>(sum);
}

void check_addresses(const Gated& params) {
    for (const void* output : params.outputs) device::require_aligned("an output", output);
    device::require_aligned("out", params.out);
}

}  // namespace

void check_plain(const Gated& params) {
    device::require_activation(params.dtype);
    require(params.rows >= 1 && params.dim >= 1, std::to_string(params.rows) + " rows of " +
                                                     std::to_string(params.dim) +
                                                     " elements; at least 1 of each is required");
}

void check(const Gated& params) {
    check_plain(params);
    require(params.dim % 8 == 0,
            "dim is " + std::to_string(params.dim) + "; multiples of 8 are supported");
}

device::Enqueue prepare(const Gated& params) {
    check(params);
    check_addresses(params);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        using T = decltype(element);
        const int per_row = params.dim / device::kPerPacket<T>;
        const std::int64_t packets = params.rows * per_row;
        return device::prepare("nsa_gated", gated_kernel<T>,
                               device::cover(packets, kThreads, kDepth), params, packets, per_row);
    });
}

device::Enqueue prepare_plain(const Gated& params) {
    check_plain(params);
    check_addresses(params);
    const std::int64_t elements = params.rows * params.dim;
    return device::dispatch_activations(params.dtype, [&](auto element) {
        return device::prepare("nsa_gated_plain", gated_plain_kernel<decltype(element)>,
                               device::cover(elements, kThreads), params, elements);
    });
}

}  // namespace nsa
