// Quantisation kernels: all read x once (rows beyond a block's registers: twice) and write each
// value and scale once.
#pragma once

#include <cstdint>

#include "Kernels/device/divider.h"
#include "Kernels/device/row_slice.cuh"
#include "Kernels/device/row_team.cuh"
#include "Kernels/quantize/config.h"
#include "Kernels/quantize/quantize.h"
#include "Kernels/quantize/scale.cuh"

namespace quantize {

struct QuantizeArguments {
    const void* x;
    uint8_t* quantized;
    void* scales;
    std::int64_t rows;
    int columns;
};

// What a team of threads reduces.
struct LargestMagnitude {
    uint32_t magnitude;
    static __device__ LargestMagnitude neutral() { return {0}; }
    __device__ LargestMagnitude operator+(LargestMagnitude other) const {
        return {max(magnitude, other.magnitude)};
    }
};

// Zeros outside the row.
template <class T, int kVectors>
__device__ __forceinline__ void load_packets(const device::RowSlice<T, kVectors, true>& slice,
                                             const T* row, int chunk, uint4 (&packets)[kVectors]) {
#pragma unroll
    for (int vector = 0; vector < kVectors; ++vector) {
        const int column = slice.first(chunk, vector);
        packets[vector] = {0, 0, 0, 0};
        if (slice.holds(column)) packets[vector] = device::ptx::load_16(row + column);
    }
}

// Per row: a team of threads (part of a warp, or a block) holds a row in registers.
template <class T, int kVectors>
__global__ void __launch_bounds__(kVectors == kRowMaxVectors ? kRowMaxThreads : 512)
    quantize_row_kernel(const __grid_constant__ QuantizeArguments arguments, int chunks) {
    using Slice = device::RowSlice<T, kVectors, true>;
    __shared__ device::TeamStorage storage;
    device::RowTeam team(storage, 1);
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const bool active = row < arguments.rows;
    const std::int64_t offset = row * arguments.columns;
    const T* x = static_cast<const T*>(arguments.x) + offset;
    const Slice slice(team, x, arguments.columns, active);

    uint4 packets[kVectors];
    LargestMagnitude largest = LargestMagnitude::neutral();
    for (int chunk = 0; chunk < chunks; ++chunk) {
        load_packets(slice, x, chunk, packets);
#pragma unroll
        for (const uint4& packet : packets) {
            largest = largest + LargestMagnitude{Magnitude<T>::of(packet)};
        }
    }
    largest = team.reduce(largest);
    const float scale = scale_of<false>(Magnitude<T>::value(largest.magnitude));
    const float inverse = __frcp_rn(scale);
    for (int chunk = 0; chunk < chunks; ++chunk) {
        if (chunks > 1) load_packets(slice, x, chunk, packets);
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) {
            const int column = slice.first(chunk, vector);
            if (slice.holds(column)) {
                store_scaled<T>(arguments.quantized + offset + column, packets[vector], inverse);
            }
        }
    }
    if (active && team.leads()) store_scale<false>(arguments.scales, row, scale);
}

// Per 128 elements of a row: part of a warp holds a group, one packet per thread; a thread has
// kPackets packets of different groups in flight. Rows count as whole groups here.
template <class T, bool kUe8m0, int kPackets>
__global__ void __launch_bounds__(256)
    quantize_group_kernel(const __grid_constant__ QuantizeArguments arguments,
                          const __grid_constant__ device::Divider packets_per_row) {
    constexpr int kPer = device::kPerPacket<T>;
    constexpr int kLanes = kGroup / kPer;
    const uint32_t first = (blockIdx.x * kPackets) * blockDim.x + threadIdx.x;

    uint4 packets[kPackets];
    std::int64_t offsets[kPackets];
#pragma unroll
    for (int packet = 0; packet < kPackets; ++packet) {
        const uint32_t index = first + packet * blockDim.x;
        const uint32_t row = packets_per_row.quotient(index);
        const int column = static_cast<int>(index - packets_per_row.times(row)) * kPer;
        const bool active = row < arguments.rows && column < arguments.columns;
        packets[packet] = {0, 0, 0, 0};
        offsets[packet] = -1;
        if (active) {
            offsets[packet] = static_cast<std::int64_t>(row) * arguments.columns + column;
            packets[packet] =
                device::ptx::load_16(static_cast<const T*>(arguments.x) + offsets[packet]);
        }
    }
#pragma unroll
    for (int packet = 0; packet < kPackets; ++packet) {
        uint32_t largest = Magnitude<T>::of(packets[packet]);
#pragma unroll
        for (int distance = kLanes / 2; distance > 0; distance /= 2) {
            largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
        }
        const float scale = scale_of<kUe8m0>(Magnitude<T>::value(largest));
        if (offsets[packet] < 0) continue;
        store_scaled<T>(arguments.quantized + offsets[packet], packets[packet], __frcp_rn(scale));
        if (threadIdx.x % kLanes == 0) {
            const uint32_t index = first + packet * blockDim.x;
            store_scale<kUe8m0>(arguments.scales, index / kLanes, scale);
        }
    }
}

// Per 128 x 128 block: one thread block holds it, kBlockRows rows per thread.
constexpr int kBlockRows = 8;

template <class T>
constexpr int kBlockThreads = kGroup / device::kPerPacket<T> * (kGroup / kBlockRows);

template <class T>
__global__ void __launch_bounds__(kBlockThreads<T>)
    quantize_block_kernel(const __grid_constant__ QuantizeArguments arguments, int across) {
    constexpr int kPer = device::kPerPacket<T>;
    constexpr int kLanes = kGroup / kPer;
    constexpr int kStep = kGroup / kBlockRows;
    constexpr int kWarps = kBlockThreads<T> / 32;
    __shared__ uint32_t of_warps[kWarps];
    const int down = static_cast<int>(blockIdx.x) / across;
    const int column = (static_cast<int>(blockIdx.x) % across) * kGroup +
                       static_cast<int>(threadIdx.x) % kLanes * kPer;
    const std::int64_t row =
        static_cast<std::int64_t>(down) * kGroup + static_cast<int>(threadIdx.x) / kLanes;
    const std::int64_t offset = row * arguments.columns + column;
    const T* x = static_cast<const T*>(arguments.x) + offset;
    const auto holds = [&](int step) {
        return column < arguments.columns && row + step * kStep < arguments.rows;
    };

    uint4 packets[kBlockRows];
#pragma unroll
    for (int step = 0; step < kBlockRows; ++step) {
        packets[step] = {0, 0, 0, 0};
        if (holds(step)) {
            packets[step] = device::ptx::load_16(x + static_cast<std::int64_t>(step * kStep) *
                                                         arguments.columns);
        }
    }
    uint32_t largest = 0;
#pragma unroll
    for (const uint4& packet : packets) largest = max(largest, Magnitude<T>::of(packet));
    largest = __reduce_max_sync(0xffffffffu, largest);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = largest;
    // All warps' partial results are written before anyone reads them.
    __syncthreads();
    largest = __reduce_max_sync(0xffffffffu, of_warps[threadIdx.x % kWarps]);

    const float scale = scale_of<false>(Magnitude<T>::value(largest));
    const float inverse = __frcp_rn(scale);
#pragma unroll
    for (int step = 0; step < kBlockRows; ++step) {
        if (!holds(step)) continue;
        store_scaled<T>(arguments.quantized + offset +
                            static_cast<std::int64_t>(step * kStep) * arguments.columns,
                        packets[step], inverse);
    }
    if (threadIdx.x == 0) store_scale<false>(arguments.scales, blockIdx.x, scale);
}

}  // namespace quantize
