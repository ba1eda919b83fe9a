// A kernel that streams tensors through an elementwise function.
//
// A tile is threads * kPackets packets of each tensor, of 16 bytes or, on Blackwell, 32; a block
// computes one tile. A thread has the packets of all inputs in flight before it computes; loads are
// coalesced. The elements past the last whole packet are left to the first threads of the last
// block.
#pragma once

#include <cstdint>

#include "Kernels/activations/units.cuh"
#include "Kernels/device/convert.cuh"
#include "Kernels/device/packet.cuh"

namespace activations {

constexpr int kMaxInputs = 3;
constexpr int kMaxOutputs = 2;

struct StreamArguments {
    const void* inputs[kMaxInputs];
    void* outputs[kMaxOutputs];
    std::int64_t elements;
};

// Function: kInputs, kOutputs, and apply(const float (&in)[kInputs], float (&out)[kOutputs]).
template <class T, class Function, int kPackets, int kUnits>
__global__ void __launch_bounds__(512)
    stream_kernel(const __grid_constant__ StreamArguments arguments) {
    constexpr int kPer = device::kPerPacket<T>;
    constexpr int kInputs = Function::kInputs;
    constexpr int kOutputs = Function::kOutputs;
    const std::int64_t packets = arguments.elements / (kPer * kUnits);
    const std::int64_t first =
        static_cast<std::int64_t>(blockIdx.x) * blockDim.x * kPackets + threadIdx.x;

    uint4 loaded[kInputs][kPackets][kUnits];
#pragma unroll
    for (int packet = 0; packet < kPackets; ++packet) {
        const std::int64_t index = first + packet * static_cast<int>(blockDim.x);
        if (index < packets) {
#pragma unroll
            for (int input = 0; input < kInputs; ++input) {
                device::load_packet(
                    static_cast<const uint4*>(arguments.inputs[input]) + index * kUnits,
                    loaded[input][packet]);
            }
        }
    }
#pragma unroll
    for (int packet = 0; packet < kPackets; ++packet) {
        const std::int64_t index = first + packet * static_cast<int>(blockDim.x);
        if (index >= packets) break;
        float out[kOutputs][kUnits][kPer];
#pragma unroll
        for (int unit = 0; unit < kUnits; ++unit) {
            float in[kInputs][kPer];
#pragma unroll
            for (int input = 0; input < kInputs; ++input) {
                device::unpack<T>(loaded[input][packet][unit], in[input]);
            }
#pragma unroll
            for (int element = 0; element < kPer; ++element) {
                float arguments_of_one[kInputs];
                float results_of_one[kOutputs];
#pragma unroll
                for (int input = 0; input < kInputs; ++input) {
                    arguments_of_one[input] = in[input][element];
                }
                Function::apply(arguments_of_one, results_of_one);
#pragma unroll
                for (int output = 0; output < kOutputs; ++output) {
                    out[output][unit][element] = results_of_one[output];
                }
            }
        }
#pragma unroll
        for (int output = 0; output < kOutputs; ++output) {
            uint4 results[kUnits];
#pragma unroll
            for (int unit = 0; unit < kUnits; ++unit) {
                results[unit] = device::pack<T>(out[output][unit]);
            }
            device::store_packet(static_cast<uint4*>(arguments.outputs[output]) + index * kUnits,
                                 results);
        }
    }

    const std::int64_t rest = packets * (kPer * kUnits) + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && rest < arguments.elements) {
        float in[kInputs];
        float out[kOutputs];
#pragma unroll
        for (int input = 0; input < kInputs; ++input) {
            in[input] = device::to_float(static_cast<const T*>(arguments.inputs[input])[rest]);
        }
        Function::apply(in, out);
#pragma unroll
        for (int output = 0; output < kOutputs; ++output) {
            static_cast<T*>(arguments.outputs[output])[rest] = device::from_float<T>(out[output]);
        }
    }
}

template <class Unit>
struct Forward {
    static constexpr int kInputs = 1;
    static constexpr int kOutputs = 1;
    static __device__ void apply(const float (&in)[1], float (&out)[1]) {
        out[0] = Unit::value(in[0]);
    }
};

template <class Unit>
struct Backward {
    static constexpr int kInputs = 2;
    static constexpr int kOutputs = 1;
    static __device__ void apply(const float (&in)[2], float (&out)[1]) {
        out[0] = Unit::both(in[0]).slope * in[1];
    }
};

template <class Unit>
struct GatedForward {
    static constexpr int kInputs = 2;
    static constexpr int kOutputs = 1;
    static __device__ void apply(const float (&in)[2], float (&out)[1]) {
        out[0] = Unit::value(in[0]) * in[1];
    }
};

template <class Unit>
struct GatedBackward {
    static constexpr int kInputs = 3;
    static constexpr int kOutputs = 2;
    static __device__ void apply(const float (&in)[3], float (&out)[2]) {
        const ValueAndSlope unit = Unit::both(in[0]);
        out[0] = in[2] * in[1] * unit.slope;
        out[1] = in[2] * unit.value;
    }
};

}  // namespace activations
