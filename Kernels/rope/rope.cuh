// RoPE kernel.
//
// A thread turns two packets of 16 bytes of a head, one of each half (half-split: the two pair;
// interleaved: each holds whole pairs), for kHeads heads of one token. All its loads are in flight
// before the first is used; cos and sin are the same for all its heads and stay in L1 for its
// neighbours.
//   threadIdx.x  packets of half a head
//   threadIdx.y  heads of a token, queries first; kHeads of them a thread, blockDim.y apart
//   threadIdx.z  tokens of a block
#pragma once

#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/memory.cuh"

namespace rope {

struct RopeArguments {
    void* queries;
    void* keys;
    const float* cos;
    const float* sin;
    std::uint32_t tokens;
    std::uint32_t sequence;
    int query_heads;
    int key_heads;
    int dim;
    // 1 forward, -1 backward.
    float direction;
};

// kCount is 2 or a multiple of 4, and `from` aligned to as many bytes as an access moves.
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

template <class T, bool kInterleaved, int kHeads>
__global__ void __launch_bounds__(512)
    rope_kernel(const __grid_constant__ RopeArguments arguments) {
    constexpr int kPer = device::kPerPacket<T>;
    const std::uint32_t token = blockIdx.x * blockDim.z + threadIdx.z;
    if (token >= arguments.tokens) return;
    const int half = arguments.dim / 2;
    // Elements of the two packets, within a head.
    const int first = threadIdx.x * kPer;
    const int second = first + half;

    uint4 packets[kHeads][2];
    T* heads[kHeads];
    const int all_heads = arguments.query_heads + arguments.key_heads;
#pragma unroll
    for (int slot = 0; slot < kHeads; ++slot) {
        const int head = threadIdx.y + slot * blockDim.y;
        heads[slot] = nullptr;
        if (head >= all_heads) continue;
        const bool is_key = head >= arguments.query_heads;
        const std::int64_t row =
            is_key ? static_cast<std::int64_t>(token) * arguments.key_heads + head -
                         arguments.query_heads
                   : static_cast<std::int64_t>(token) * arguments.query_heads + head;
        T* tensor = static_cast<T*>(is_key ? arguments.keys : arguments.queries);
        heads[slot] = tensor + row * arguments.dim;
        packets[slot][0] = device::ptx::load_16(heads[slot] + first);
        packets[slot][1] = device::ptx::load_16(heads[slot] + second);
    }

    // Two packets hold kPer pairs either way: one run of the table, or half a run for each packet.
    const std::int64_t position = static_cast<std::int64_t>(token % arguments.sequence) * half;
    float cos[kPer];
    float sin[kPer];
    if constexpr (kInterleaved) {
        constexpr int kHalf = kPer / 2;
        load_floats<kHalf>(arguments.cos + position + first / 2, cos);
        load_floats<kHalf>(arguments.cos + position + second / 2, cos + kHalf);
        load_floats<kHalf>(arguments.sin + position + first / 2, sin);
        load_floats<kHalf>(arguments.sin + position + second / 2, sin + kHalf);
    } else {
        load_floats<kPer>(arguments.cos + position + first, cos);
        load_floats<kPer>(arguments.sin + position + first, sin);
    }
#pragma unroll
    for (float& value : sin) value *= arguments.direction;

#pragma unroll
    for (int slot = 0; slot < kHeads; ++slot) {
        if (heads[slot] == nullptr) continue;
        float a[kPer];
        float b[kPer];
        device::unpack<T>(packets[slot][0], a);
        device::unpack<T>(packets[slot][1], b);
#pragma unroll
        for (int element = 0; element < kPer; ++element) {
            if constexpr (kInterleaved) {
                // Pairs 0 .. kPer/2-1 are in the first packet, the others in the second.
                if (element % 2 == 0) {
                    turn(a[element], a[element + 1], cos[element / 2], sin[element / 2]);
                    turn(b[element], b[element + 1], cos[kPer / 2 + element / 2],
                         sin[kPer / 2 + element / 2]);
                }
            } else {
                turn(a[element], b[element], cos[element], sin[element]);
            }
        }
        device::ptx::store_16(heads[slot] + first, device::pack<T>(a));
        device::ptx::store_16(heads[slot] + second, device::pack<T>(b));
    }
}

}  // namespace rope
