// MXFP8, NVFP4 and MXFP4: a thread has 16 elements of a row, half a group or, of NVFP4, one.
#pragma once

#include <cfloat>
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/divider.h"
#include "Kernels/device/fp4.cuh"
#include "Kernels/device/fp8.cuh"
#include "Kernels/device/packet.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/scale_tiles.h"
#include "Kernels/quantize/quantize.h"
#include "Kernels/quantize/scale.cuh"

namespace quantize {

using device::kScaleTileColumns;
using device::kScaleTileRows;

// Elements of a thread.
constexpr int kChunk = 16;

struct TiledArguments {
    // x, or of the inverse the result.
    const void* wide;
    const uint8_t* quantized;
    const uint8_t* scales;
    const float* tensor_scale;
    std::int64_t rows;
    int columns;
    // Tiles of scales.
    int across;
};

inline TiledArguments tiled_arguments(const Matrix& matrix, const void* wide, const void* quantized,
                                      const void* scales, const float* tensor_scale) {
    const int group = tiled_group(matrix.scaling);
    const int across = device::scale_tiles_across((matrix.columns + group - 1) / group);
    return {wide,
            static_cast<const uint8_t*>(quantized),
            static_cast<const uint8_t*>(scales),
            tensor_scale,
            matrix.rows,
            matrix.columns,
            across};
}

// A scale's code, and what elements are multiplied by.
struct TiledScale {
    uint32_t code;
    float inverse;
};

template <Scaling kScaling>
__device__ __forceinline__ TiledScale tiled_scale(float largest, const float* tensor_scale) {
    if constexpr (kScaling == Scaling::Nvfp4) {
        const float of_tensor = __ldg(tensor_scale);
        // False for a NaN too.
        const float exact = largest <= FLT_MAX ? __fdiv_rn(__fdiv_rn(largest, 6.0f), of_tensor)
                                               : __uint_as_float(0x7fffffffu);
        const uint16_t code = device::e4m3_pair(exact, 0.0f) & 0x7f;
        const float scale = __fmul_rn(device::e4m3_floats(code).x, of_tensor);
        return {code, code == 0 ? 0.0f : __frcp_rn(scale)};
    } else {
        const float scale = scale_of<true, is_paired(kScaling) ? 6 : 448>(largest);
        return {__float_as_uint(scale) >> 23 & 0xffu, __frcp_rn(scale)};
    }
}

// Four codes of neighbouring scales as one word, in every lane; kLanes lanes have the same scale.
template <int kLanes>
__device__ __forceinline__ uint32_t word_of_codes(uint32_t code) {
    uint32_t word = code << threadIdx.x / kLanes % 4 * 8;
    word |= __shfl_xor_sync(0xffffffffu, word, kLanes);
    return word | __shfl_xor_sync(0xffffffffu, word, 2 * kLanes);
}

// Rows and columns count as whole tiles of scales here, so that threads write the padding too.
template <class T, Scaling kScaling, int kUnits>
__global__ void __launch_bounds__(256)
    quantize_tiled_kernel(const __grid_constant__ TiledArguments arguments,
                          const __grid_constant__ device::Divider chunks_per_row) {
    constexpr int kPer = device::kPerPacket<T>;
    constexpr int kUnitsOfChunk = kChunk / kPer;
    constexpr bool kPairs = is_paired(kScaling);
    constexpr int kLanes = tiled_group(kScaling) / kChunk;
    const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t row = chunks_per_row.quotient(index);
    const int column = static_cast<int>(index - chunks_per_row.times(row)) * kChunk;
    const bool active = row < arguments.rows && column < arguments.columns;
    const std::int64_t offset = static_cast<std::int64_t>(row) * arguments.columns + column;

    uint4 packets[kUnitsOfChunk / kUnits][kUnits];
    uint32_t largest = 0;
#pragma unroll
    for (int packet = 0; packet < kUnitsOfChunk / kUnits; ++packet) {
#pragma unroll
        for (uint4& unit : packets[packet]) unit = {0, 0, 0, 0};
        if (active) {
            device::load_packet(
                static_cast<const T*>(arguments.wide) + offset + packet * kUnits * kPer,
                packets[packet]);
        }
#pragma unroll
        for (const uint4& unit : packets[packet]) {
            largest = max(largest, Magnitude<T>::of(unit));
        }
    }
    if constexpr (kLanes == 2) largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    const TiledScale scale =
        tiled_scale<kScaling>(Magnitude<T>::value(largest), arguments.tensor_scale);
    // A group has elements if its first thread has.
    const int first = column / tiled_group(kScaling) * tiled_group(kScaling);
    const bool exists = row < arguments.rows && first < arguments.columns;
    const uint32_t codes = word_of_codes<kLanes>(exists ? scale.code : 0);
    if (threadIdx.x % (4 * kLanes) == 0) {
        const std::int64_t place =
            device::scale_place(row, column / tiled_group(kScaling), arguments.across);
        *reinterpret_cast<uint32_t*>(const_cast<uint8_t*>(arguments.scales) + place) = codes;
    }
    if (!active) return;
    uint32_t words[kPairs ? 2 : 4] = {};
#pragma unroll
    for (int unit = 0; unit < kUnitsOfChunk; ++unit) {
        float values[kPer];
        device::unpack<T>(packets[unit / kUnits][unit % kUnits], values);
#pragma unroll
        for (int i = 0; i < kPer; i += 2) {
            const float low = __fmul_rn(values[i], scale.inverse);
            const float high = __fmul_rn(values[i + 1], scale.inverse);
            const int pair = (unit * kPer + i) / 2;
            if constexpr (kPairs) {
                words[pair / 4] |= device::e2m1_pair(low, high) << pair % 4 * 8;
            } else {
                words[pair / 2] |= static_cast<uint32_t>(device::e4m3_pair(low, high))
                                   << pair % 2 * 16;
            }
        }
    }
    uint8_t* out = const_cast<uint8_t*>(arguments.quantized);
    if constexpr (kPairs) {
        device::ptx::store_8(out + offset / 2, {words[0], words[1]});
    } else {
        device::ptx::store_16(out + offset, {words[0], words[1], words[2], words[3]});
    }
}

template <class T, Scaling kScaling, int kUnits>
__global__ void __launch_bounds__(256)
    dequantize_tiled_kernel(const __grid_constant__ TiledArguments arguments,
                            const __grid_constant__ device::Divider chunks_per_row) {
    constexpr int kPer = device::kPerPacket<T>;
    const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t row = chunks_per_row.quotient(index);
    if (row >= arguments.rows) return;
    const int column = static_cast<int>(index - chunks_per_row.times(row)) * kChunk;
    const std::int64_t offset = static_cast<std::int64_t>(row) * arguments.columns + column;
    const uint32_t code =
        __ldg(arguments.scales +
              device::scale_place(row, column / tiled_group(kScaling), arguments.across));
    float values[kChunk];
    if constexpr (is_paired(kScaling)) {
        const uint2 codes = device::ptx::load_8(arguments.quantized + offset / 2);
        const uint32_t words[2] = {codes.x, codes.y};
        float scale;
        if constexpr (kScaling == Scaling::Nvfp4) {
            scale = device::e4m3_floats(static_cast<uint16_t>(code & 0x7fu)).x *
                    __ldg(arguments.tensor_scale);
        } else {
            scale = device::ue8m0_float(code);
        }
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
            values[i] = device::e2m1_float(words[i / 8] >> i % 8 * 4) * scale;
        }
    } else {
        const uint4 codes = device::ptx::load_16(arguments.quantized + offset);
        const uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
        const float scale = device::ue8m0_float(code);
#pragma unroll
        for (int i = 0; i < kChunk; i += 2) {
            const float2 both =
                device::e4m3_floats(static_cast<uint16_t>(words[i / 4] >> i % 4 * 8));
            values[i] = both.x * scale;
            values[i + 1] = both.y * scale;
        }
    }
    T* out = static_cast<T*>(const_cast<void*>(arguments.wide)) + offset;
#pragma unroll
    for (int packet = 0; packet < kChunk / kPer; packet += kUnits) {
        uint4 units[kUnits];
#pragma unroll
        for (int unit = 0; unit < kUnits; ++unit) {
            float part[kPer];
#pragma unroll
            for (int i = 0; i < kPer; ++i) part[i] = values[(packet + unit) * kPer + i];
            units[unit] = device::pack<T>(part);
        }
        device::store_packet(reinterpret_cast<uint4*>(out) + packet, units);
    }
}

}  // namespace quantize
