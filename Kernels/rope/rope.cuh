// RoPE kernel.
//
// A row is one head of one token. A block rotates consecutive rows of the queries or of the keys,
// and blocks are in memory order with few bytes per thread, so that the accesses in flight are
// close together. Several heads of a token per thread, queries and keys in one block, or larger
// blocks lose 1 to 4 % on an H200. cos and sin stay in L1 for a token's other heads.
//   threadIdx.x  packets (device/packet.cuh): of half a row, if a thread also has the one half a
//                row further, which it pairs with; or of a row, if interleaved packets hold whole
//                pairs
//   threadIdx.y  rows
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/divider.h"
#include "Kernels/device/packet.cuh"
#include "Kernels/device/ptx/memory.cuh"

namespace rope {

struct Rows {
    void* start;
    std::uint32_t count;
    device::Divider heads;
};

struct RopeArguments {
    Rows queries;
    Rows keys;
    // Blocks for the queries; those for the keys follow.
    std::uint32_t query_blocks;
    device::Divider sequence;
    const float* cos;
    const float* sin;
    int dim;
    // 1 forward, -1 backward.
    float direction;
};

// Threads of a block, and of one whose only row has more packets.
constexpr int kThreads = 128;
constexpr int kMostThreads = 256;

// kCount is 2 or a multiple of 4, and `from` is aligned to the access size.
template <int kCount>
__device__ __forceinline__ void load_floats(const float* from, float* to) {
    if constexpr (kCount == 2) {
        const float2 two = __ldg(reinterpret_cast<const float2*>(from));
        to[0] = two.x;
        to[1] = two.y;
    } else {
#pragma unroll
        for (int quad = 0; quad < kCount; quad += 4) {
            float four[4];
            device::unpack<float>(device::ptx::load_16_shared_by_rows(from + quad), four);
#pragma unroll
            for (int element = 0; element < 4; ++element) to[quad + element] = four[element];
        }
    }
}

__device__ __forceinline__ void turn(float& a, float& b, float cos, float sin) {
    const float turned = fmaf(a, cos, -b * sin);
    b = fmaf(b, cos, a * sin);
    a = turned;
}

template <class T, bool kInterleaved, int kUnits>
__global__ void __launch_bounds__(kMostThreads)
    rope_kernel(const __grid_constant__ RopeArguments arguments) {
    constexpr int kPer = device::kPerPacket<T>;
    constexpr int kPackets = kInterleaved ? 1 : 2;
    constexpr int kPairs = kPackets * kUnits * kPer / 2;
    const bool is_key = blockIdx.x >= arguments.query_blocks;
    const Rows& rows = is_key ? arguments.keys : arguments.queries;
    const std::uint32_t block = is_key ? blockIdx.x - arguments.query_blocks : blockIdx.x;
    const std::uint32_t row = block * blockDim.y + threadIdx.y;
    if (row >= rows.count) return;
    const int half = arguments.dim / 2;
    T* start = static_cast<T*>(rows.start) + static_cast<std::int64_t>(row) * arguments.dim +
               threadIdx.x * kUnits * kPer;
    uint4 packets[kPackets][kUnits];
#pragma unroll
    for (int i = 0; i < kPackets; ++i) device::load_packet(start + i * half, packets[i]);

    const std::uint32_t token = rows.heads.quotient(row);
    const std::uint32_t position =
        token - arguments.sequence.times(arguments.sequence.quotient(token));
    const std::int64_t pair = static_cast<std::int64_t>(position) * half + threadIdx.x * kPairs;
    float cos[kPairs];
    float sin[kPairs];
    load_floats<kPairs>(arguments.cos + pair, cos);
    load_floats<kPairs>(arguments.sin + pair, sin);

    float values[kPackets][kUnits][kPer];
#pragma unroll
    for (int i = 0; i < kPackets; ++i) {
#pragma unroll
        for (int unit = 0; unit < kUnits; ++unit) {
            device::unpack<T>(packets[i][unit], values[i][unit]);
        }
    }
    const auto value = [&](int packet, int i) -> float& {
        return values[packet][i / kPer][i % kPer];
    };
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
        float& a = kInterleaved ? value(0, 2 * i) : value(0, i);
        float& b = kInterleaved ? value(0, 2 * i + 1) : value(kPackets - 1, i);
        turn(a, b, cos[i], arguments.direction * sin[i]);
    }
#pragma unroll
    for (int i = 0; i < kPackets; ++i) {
#pragma unroll
        for (int unit = 0; unit < kUnits; ++unit) {
            packets[i][unit] = device::pack<T>(values[i][unit]);
        }
        device::store_packet(start + i * half, packets[i]);
    }
}

}  // namespace rope
