// Memory streams: copy, triad, read.
//
// A tile is threads * kUnroll vectors of 16 bytes; a thread has all its loads of a tile in flight
// before the first store. Blocks process tiles in a grid-stride loop.

#include <string>

#include "Kernels/benchmarks/harness/roofline/cuda/kernels.h"
#include "Kernels/bridge/convert.h"
#include "Kernels/device/launch.h"

namespace roofline {
namespace {

using device::check;
using device::pointer;

constexpr float kScale = 0.40625f;  // exact in every binary format; keeps sums in range

struct Copy {
    static constexpr bool kReadsB = false;
    static constexpr bool kWrites = true;
    static __device__ float4 apply(float4 a, float4) { return a; }
};

struct Triad {
    static constexpr bool kReadsB = true;
    static constexpr bool kWrites = true;
    static __device__ float4 apply(float4 a, float4 b) {
        return make_float4(a.x + kScale * b.x, a.y + kScale * b.y, a.z + kScale * b.z,
                           a.w + kScale * b.w);
    }
};

struct Read {
    static constexpr bool kReadsB = false;
    static constexpr bool kWrites = false;
};

// With the default cache policy or with the streaming hint: which is faster depends on what the
// previous kernel left in L2.
template <bool kHinted>
__device__ __forceinline__ float4 load(const float4* address) {
    if constexpr (kHinted) return __ldcs(address);
    return *address;
}

template <bool kHinted>
__device__ __forceinline__ void store(float4* address, float4 value) {
    if constexpr (kHinted) {
        __stcs(address, value);
    } else {
        *address = value;
    }
}

template <class Kind, int kUnroll, bool kHinted>
__global__ void memory_kernel(float4* __restrict__ out, const float4* __restrict__ a,
                              const float4* __restrict__ b, uint64_t vectors) {
    uint64_t tile = static_cast<uint64_t>(blockDim.x) * kUnroll;
    float sum = 0;
    for (uint64_t base = blockIdx.x * tile + threadIdx.x; base < vectors;
         base += gridDim.x * tile) {
        float4 left[kUnroll];
        float4 right[kUnroll];
#pragma unroll
        for (int i = 0; i < kUnroll; ++i) {
            left[i] = load<kHinted>(a + base + i * blockDim.x);
            if constexpr (Kind::kReadsB) right[i] = load<kHinted>(b + base + i * blockDim.x);
        }
#pragma unroll
        for (int i = 0; i < kUnroll; ++i) {
            if constexpr (Kind::kWrites) {
                store<kHinted>(out + base + i * blockDim.x, Kind::apply(left[i], right[i]));
            } else {
                sum += (left[i].x + left[i].y) + (left[i].z + left[i].w);
            }
        }
    }
    // Never true for values in [-1, 1]; keeps the loads alive.
    if (!Kind::kWrites && sum > 1e30f) out[0].x = sum;
}

template <class Kind, int kUnroll, bool kHinted>
void launch(uint32_t threads, uint32_t blocks, size_t out, size_t a, size_t b, uint64_t bytes,
            size_t stream) {
    uint64_t vectors = bytes / sizeof(float4);
    uint64_t tile = static_cast<uint64_t>(threads) * kUnroll;
    if (bytes % (tile * sizeof(float4)) != 0) {
        throw std::runtime_error("memory_pass: " + std::to_string(bytes) +
                                 " bytes are not a whole number of tiles");
    }
    uint64_t tiles = vectors / tile;
    uint32_t grid = blocks == 0 || blocks > tiles ? static_cast<uint32_t>(tiles) : blocks;
    memory_kernel<Kind, kUnroll, kHinted><<<grid, threads, 0, pointer<CUstream_st>(stream)>>>(
        pointer<float4>(out), pointer<float4>(a), pointer<float4>(b), vectors);
    check(cudaGetLastError(), "memory_pass");
}

template <class Kind, bool kHinted>
void launch_unrolled(uint32_t unroll, uint32_t threads, uint32_t blocks, size_t out, size_t a,
                     size_t b, uint64_t bytes, size_t stream) {
    switch (unroll) {
        case 1:
            return launch<Kind, 1, kHinted>(threads, blocks, out, a, b, bytes, stream);
        case 2:
            return launch<Kind, 2, kHinted>(threads, blocks, out, a, b, bytes, stream);
        case 4:
            return launch<Kind, 4, kHinted>(threads, blocks, out, a, b, bytes, stream);
        case 8:
            return launch<Kind, 8, kHinted>(threads, blocks, out, a, b, bytes, stream);
    }
    throw std::runtime_error("memory_pass: unroll " + std::to_string(unroll) +
                             " is not one of 1, 2, 4, 8");
}

template <class Kind>
void launch_hinted(bool hinted, uint32_t unroll, uint32_t threads, uint32_t blocks, size_t out,
                   size_t a, size_t b, uint64_t bytes, size_t stream) {
    auto launcher = hinted ? launch_unrolled<Kind, true> : launch_unrolled<Kind, false>;
    launcher(unroll, threads, blocks, out, a, b, bytes, stream);
}

}  // namespace

void memory_pass(uint32_t traffic, bool hinted, uint32_t threads, uint32_t unroll, uint32_t blocks,
                 size_t out, size_t a, size_t b, uint64_t bytes, size_t stream) {
    switch (traffic) {
        case kCopy:
            return launch_hinted<Copy>(hinted, unroll, threads, blocks, out, a, b, bytes, stream);
        case kTriad:
            return launch_hinted<Triad>(hinted, unroll, threads, blocks, out, a, b, bytes, stream);
        case kRead:
            return launch_hinted<Read>(hinted, unroll, threads, blocks, out, a, b, bytes, stream);
    }
    throw std::runtime_error("memory_pass: no traffic of kind " + std::to_string(traffic));
}

void memcpy_pass(size_t out, size_t a, uint64_t bytes, size_t stream) {
    check(cudaMemcpyAsync(pointer<void>(out), pointer<void>(a), bytes, cudaMemcpyDeviceToDevice,
                          pointer<CUstream_st>(stream)),
          "memcpy_pass");
}

}  // namespace roofline
