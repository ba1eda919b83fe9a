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
    __device__ float operator()(uint32_t bits) const { return uniform(bits, low, high); }
};

struct Index {
    uint32_t below;
    __device__ double operator()(uint32_t bits) const { return index_below(bits, below); }
};

template <class Type, class Distribution>
__global__ void fill_kernel(typename Type::Storage* out, uint64_t elements, uint64_t packs,
                            uint64_t key, Distribution distribution) {
    using Out = Pack<typename Type::Storage>;
    for (uint64_t index = grid_thread(); index < packs; index += grid_threads()) {
        Out pack;
#pragma unroll
        for (int at = 0; at < Out::kSize; ++at) {
            uint32_t bits = random_bits(key, index * Out::kSize + at);
            pack.values[at] = Type::encode(distribution(bits));
        }
        reinterpret_cast<Out*>(out)[index] = pack;
    }
    for (uint64_t index = packs * Out::kSize + grid_thread(); index < elements;
         index += grid_threads()) {
        out[index] = Type::encode(distribution(random_bits(key, index)));
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

}  // namespace harness_device
