// RMSNorm and quantisation in one kernel: x is read once (rows beyond a block's registers: twice),
// and what the norm computes never goes to memory.
//
// Warps share a row as for per-row quantisation. Packets of neighbouring lanes are neighbours, so
// that part of a warp has a group, and a warp whole words of four scales of a tile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "Kernels/quantize/blocks.cuh"
#include "Kernels/quantize/quantize.cuh"

namespace quantize {

struct NormQuantizeArguments {
    const void* x;
    const void* weight;
    uint8_t* quantized;
    void* scales;
    const float* tensor_scale;
    std::int64_t rows;
    int columns;
    int across;  // groups of a row, or tiles of scales
    float epsilon;
};

// A scale that is rounded may double with the last bit of a sum: under such scales sums are in
// fp64, and only their inverse root is rounded, so that their order does not matter.
template <Scaling kScaling>
using NormSum = std::conditional_t<is_tiled(kScaling), device::WideSum, device::Sum>;

__device__ __forceinline__ float inverse_root(device::Sum sum, int columns, float epsilon) {
    return rsqrtf(__fdiv_rn(sum.value, static_cast<float>(columns)) + epsilon);
}
__device__ __forceinline__ float inverse_root(device::WideSum sum, int columns, float epsilon) {
    return __double2float_rn(__drcp_rn(__dsqrt_rn(__ddiv_rn(sum.value, columns) + epsilon)));
}

// Of a group: what elements are multiplied by, and its scale or the scale's code.
template <Scaling kScaling>
struct GroupScale {
    float inverse;
    std::conditional_t<is_tiled(kScaling), uint32_t, float> stored;

    __device__ GroupScale(float largest, const float* tensor_scale) {
        if constexpr (is_tiled(kScaling)) {
            const TiledScale scale = tiled_scale<kScaling>(largest, tensor_scale);
            inverse = scale.inverse;
            stored = scale.code;
        } else {
            stored = scale_of<false>(largest);
            inverse = __frcp_rn(stored);
        }
    }
};

// `quantized` is the matrix, `index` that of the first value.
template <Scaling kScaling, int kPer>
__device__ __forceinline__ void store_elements(uint8_t* quantized, std::int64_t index,
                                               const float (&values)[kPer], float inverse) {
    if constexpr (is_paired(kScaling)) {
        uint32_t word = 0;
#pragma unroll
        for (int i = 0; i < kPer; i += 2) {
            word |= static_cast<uint32_t>(device::e2m1_pair(__fmul_rn(values[i], inverse),
                                                            __fmul_rn(values[i + 1], inverse)))
                    << i * 4;
        }
        using Word = std::conditional_t<kPer == 8, uint32_t, uint16_t>;
        *reinterpret_cast<Word*>(quantized + index / 2) = static_cast<Word>(word);
    } else {
        store_scaled_values(quantized + index, values, inverse);
    }
}

template <class T, Scaling kScaling, int kVectors>
__global__ void __launch_bounds__(kVectors == kRowMaxVectors ? kRowMaxThreads : 512)
    norm_quantize_kernel(const __grid_constant__ NormQuantizeArguments arguments, int chunks) {
    using Slice = device::RowSlice<T, kVectors, true>;
    using Sum = NormSum<kScaling>;
    using Real = decltype(Sum::value);
    constexpr int kPer = device::kPerPacket<T>;
    constexpr int kElements = is_tiled(kScaling) ? tiled_group(kScaling) : kGroup;
    constexpr int kLanes = kElements / kPer;
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
    Real squares[kPer] = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
        load_packets(slice, x, chunk, packets);
#pragma unroll
        for (const uint4& packet : packets) {
            float values[kPer];
            device::unpack<T>(packet, values);
#pragma unroll
            for (int i = 0; i < kPer; ++i) {
                const Real value = values[i];
                squares[i] = fma(value, value, squares[i]);
            }
        }
    }
#pragma unroll
    for (int distance = kPer / 2; distance > 0; distance /= 2) {
#pragma unroll
        for (int i = 0; i < distance; ++i) squares[i] += squares[i + distance];
    }
    const float rstd =
        inverse_root(team.reduce(Sum{squares[0]}), arguments.columns, arguments.epsilon);
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
            const GroupScale<kScaling> scale(__uint_as_float(largest), arguments.tensor_scale);
            if constexpr (is_tiled(kScaling)) {
                // A group has elements if its first lane has. Rows of a last tile that do not exist
                // have words of zeros, as wide as the others.
                const uint32_t codes = word_of_codes<kLanes>(holds ? scale.stored : 0);
                if (threadIdx.x % (4 * kLanes) == 0 && column < arguments.columns) {
                    const std::int64_t place =
                        device::scale_place(row, column / kElements, arguments.across);
                    *reinterpret_cast<uint32_t*>(static_cast<uint8_t*>(arguments.scales) + place) =
                        codes;
                }
            }
            if (!holds) continue;
            store_elements<kScaling>(arguments.quantized, offset + column, values, scale.inverse);
            if constexpr (!is_tiled(kScaling)) {
                if (threadIdx.x % kLanes == 0) {
                    store_scale<false>(arguments.scales,
                                       row * arguments.across + column / kElements, scale.stored);
                }
            }
        }
    }
}

}  // namespace quantize
