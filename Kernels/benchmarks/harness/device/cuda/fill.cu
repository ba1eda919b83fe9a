// Seeded contents of tensors.
//
// One pack of elements per thread, grid-stride; adjacent threads write adjacent packs.

#include "Kernels/benchmarks/harness/device/cuda/kernels.h"
#include "Kernels/benchmarks/harness/device/cuda/launch.cuh"

namespace harness_device {
namespace {

// A distribution has a place, from which consecutive elements are drawn.
struct Uniform {
    float low;
    float high;
    __device__ Uniform at(uint64_t) const { return *this; }
    __device__ float next(uint32_t bits) const { return uniform(bits, low, high); }
};

struct Index {
    uint32_t below;
    __device__ Index at(uint64_t) const { return *this; }
    __device__ double next(uint32_t bits) const { return index_below(bits, below); }
};

// Counts up to a period, over and over.
struct Counter {
    uint64_t period;
    uint64_t value;
    // Whether it begins again.
    __device__ bool step() {
        value = value + 1 == period ? 0 : value + 1;
        return value == 0;
    }
};

// tensor::Shaped, with its tables in device memory.
struct Shaped {
    // An element's slot is its number of outer periods times `inner`, plus its number of runs
    // modulo `inner`. Divided for once a place: divisions of 64 bits take longer than all the rest.
    struct Place {
        const float2* ranges;
        const uint8_t* levels;
        const float* factors;
        uint64_t first_slot;
        Counter in_outer;
        Counter in_run;
        Counter runs;
        Counter column;
        __device__ float next(uint32_t bits) {
            float2 range = ranges[levels == nullptr ? 0 : levels[first_slot + runs.value]];
            float factor = factors == nullptr ? 1.0f : factors[column.value];
            if (in_outer.step()) first_slot += runs.period;
            if (in_run.step()) runs.step();
            column.step();
            return __fmul_rn(uniform(bits, range.x, range.y), factor);
        }
    };
    const float2* ranges;
    const uint8_t* levels;  // null if all are 0
    const float* factors;   // null if all are 1
    uint64_t outer;
    uint64_t inner;
    uint64_t run;
    uint64_t columns;
    __device__ Place at(uint64_t index) const {
        uint64_t in_column = factors == nullptr ? 0 : index % columns;
        return {ranges,
                levels,
                factors,
                index / outer * inner,
                {outer, index % outer},
                {run, index % run},
                {inner, index / run % inner},
                {columns, in_column}};
    }
};

template <class Type, class Distribution>
__global__ void fill_kernel(typename Type::Storage* out, uint64_t elements, uint64_t packs,
                            uint64_t key, Distribution distribution) {
    using Out = Pack<typename Type::Storage>;
    for (uint64_t index = grid_thread(); index < packs; index += grid_threads()) {
        Out pack;
        auto place = distribution.at(index * Out::kSize);
#pragma unroll
        for (int at = 0; at < Out::kSize; ++at) {
            uint32_t bits = random_bits(key, index * Out::kSize + at);
            pack.values[at] = Type::encode(place.next(bits));
        }
        reinterpret_cast<Out*>(out)[index] = pack;
    }
    for (uint64_t index = packs * Out::kSize + grid_thread(); index < elements;
         index += grid_threads()) {
        out[index] = Type::encode(distribution.at(index).next(random_bits(key, index)));
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
