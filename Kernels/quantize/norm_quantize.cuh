// RMSNorm and quantisation with a scale per 128 elements in one kernel: x is read once (rows beyond
// a block's registers: twice), and what the norm computes never goes to memory.
//
// Warps share a row as for per-row quantisation. Packets of neighbouring lanes are neighbours, so
// that part of a warp has a group.
#pragma once

#include <cstdint>

#include "Kernels/quantize/quantize.cuh"

namespace quantize {

struct NormQuantizeArguments {
    const void* x;
    const void* weight;
    uint8_t* quantized;
    float* scales;
    std::int64_t rows;
    int columns;
    int across;  // groups of a row
    float epsilon;
};

template <class T, int kVectors>
__global__ void __launch_bounds__(kVectors == kRowMaxVectors ? kRowMaxThreads : 512)
    norm_quantize_kernel(const __grid_constant__ NormQuantizeArguments arguments, int chunks) {
    using Slice = device::RowSlice<T, kVectors, true>;
    constexpr int kPer = device::kPerPacket<T>;
    constexpr int kLanes = kGroup / kPer;
    __shared__ device::TeamStorage storage;
    device::RowTeam team(storage, 1);
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const bool active = row < arguments.rows;
    const std::int64_t offset = row * arguments.columns;
    const T* x = static_cast<const T*>(arguments.x) + offset;
    const T* weight = static_cast<const T*>(arguments.weight);
    const Slice slice(team, x, arguments.columns, active);

    uint4 packets[kVectors];
    // Each addition depends on the one before: as many sums as a packet has elements.
    float squares[kPer] = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
        load_packets(slice, x, chunk, packets);
#pragma unroll
        for (const uint4& packet : packets) {
            float values[kPer];
            device::unpack<T>(packet, values);
#pragma unroll
            for (int i = 0; i < kPer; ++i) squares[i] = fmaf(values[i], values[i], squares[i]);
        }
    }
#pragma unroll
    for (int distance = kPer / 2; distance > 0; distance /= 2) {
#pragma unroll
        for (int i = 0; i < distance; ++i) squares[i] += squares[i + distance];
    }
    const float sum = team.reduce(device::Sum{squares[0]}).value;
    const float rstd =
        rsqrtf(__fdiv_rn(sum, static_cast<float>(arguments.columns)) + arguments.epsilon);
    // The last chunk is still in registers.
    for (int chunk = chunks - 1; chunk >= 0; --chunk) {
        if (chunk != chunks - 1) load_packets(slice, x, chunk, packets);
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) {
            const int column = slice.first(chunk, vector);
            const bool holds = slice.holds(column);
            float values[kPer] = {};
            uint32_t largest = 0;
            if (holds) {
                float weights[kPer];
                device::unpack<T>(packets[vector], values);
                device::unpack<T>(device::ptx::load_16_constant(weight + column), weights);
#pragma unroll
                for (int i = 0; i < kPer; ++i) {
                    values[i] = values[i] * rstd * weights[i];
                    // A NaN is the largest.
                    largest = max(largest, __float_as_uint(values[i]) & 0x7fffffffu);
                }
            }
#pragma unroll
            for (int distance = kLanes / 2; distance > 0; distance /= 2) {
                largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
            }
            if (!holds) continue;
            const float scale = scale_of<false>(__uint_as_float(largest));
            store_scaled_values(arguments.quantized + offset + column, values, __frcp_rn(scale));
            if (threadIdx.x % kLanes == 0) {
                store_scale<false>(arguments.scales, row * arguments.across + column / kGroup,
                                   scale);
            }
        }
    }
}

}  // namespace quantize
