// Seeded contents of tensors.
//
// One pack of elements per thread, grid-stride; adjacent threads write adjacent packs.

#include "Kernels/benchmarks/harness/device/cuda/kernels.h"
#include "Kernels/benchmarks/harness/device/cuda/launch.cuh"

namespace harness_device {
namespace {

struct Uniform {
    float low;
    float high;
    __device__ float operator()(uint32_t bits, uint64_t) const { return uniform(bits, low, high); }
};

struct Index {
    uint32_t below;
    __device__ double operator()(uint32_t bits, uint64_t) const { return index_below(bits, below); }
};

// tensor::Shaped, with its tables in device memory.
struct Shaped {
    const float2* ranges;
    const uint8_t* levels;  // null if all are 0
    const float* factors;   // null if all are 1
    uint64_t outer;
    uint64_t inner;
    uint64_t run;
    uint64_t columns;
    __device__ float operator()(uint32_t bits, uint64_t index) const {
        uint64_t slot = index / outer * inner + index / run % inner;
        float2 range = ranges[levels == nullptr ? 0 : levels[slot]];
        float factor = factors == nullptr ? 1.0f : factors[index % columns];
        return __fmul_rn(uniform(bits, range.x, range.y), factor);
    }
};

template <class Type, class Distribution>
__global__ void fill_kernel(typename Type::Storage* out, uint64_t elements, uint64_t packs,
                            uint64_t key, Distribution distribution) {
    using Out = Pack<typename Type::Storage>;
    for (uint64_t index = grid_thread(); index < packs; index += grid_threads()) {
        Out pack;
#pragma unroll
        for (int at = 0; at < Out::kSize; ++at) {
            uint64_t element = index * Out::kSize + at;
            pack.values[at] = Type::encode(distribution(random_bits(key, element), element));
        }
        reinterpret_cast<Out*>(out)[index] = pack;
    }
    for (uint64_t index = packs * Out::kSize + grid_thread(); index < elements;
         index += grid_threads()) {
        out[index] = Type::encode(distribution(random_bits(key, index), index));
    }
}

template <class Distribution>
void fill(size_t address, uint64_t elements, uint32_t dtype, uint64_t key,
          Distribution distribution, size_t stream) {
    if (elements == 0) return;
    dispatch(dtype, [&](auto type) {
        using Type = decltype(type);
        using Storage = typename Type::Storage;
        fill_kernel<Type><<<kBlocks, kThreads, 0, as_stream(stream)>>>(
            as_pointer<Storage>(address), elements, packs<Storage>(address, elements), key,
            distribution);
    });
    check(cudaGetLastError(), "fill");
}

}  // namespace

void fill_uniform(size_t address, uint64_t elements, uint32_t dtype, uint64_t key, float low,
                  float high, size_t stream) {
    fill(address, elements, dtype, key, Uniform{low, high}, stream);
}

void fill_index(size_t address, uint64_t elements, uint32_t dtype, uint64_t key, uint32_t below,
                size_t stream) {
    fill(address, elements, dtype, key, Index{below}, stream);
}

void fill_shaped(size_t address, uint64_t elements, uint32_t dtype, uint64_t key, size_t ranges,
                 size_t levels, size_t factors, uint64_t outer, uint64_t inner, uint64_t run,
                 uint64_t columns, size_t stream) {
    Shaped shaped{as_pointer<const float2>(ranges),
                  as_pointer<const uint8_t>(levels),
                  as_pointer<const float>(factors),
                  outer,
                  inner,
                  run,
                  columns};
    fill(address, elements, dtype, key, shaped, stream);
}

}  // namespace harness_device
