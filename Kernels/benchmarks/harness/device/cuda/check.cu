// Scans over memory: canary scan, checksum, comparison.
//
// All three reduce in two steps without atomics: each block writes one partial result to scratch,
// and the host combines them in block order, so sums of doubles are reproducible.

#include <algorithm>
#include <vector>

#include "Kernels/benchmarks/harness/device/cuda/kernels.h"
#include "Kernels/benchmarks/harness/device/cuda/launch.cuh"

namespace harness_device {
namespace {

constexpr uint64_t kNone = ~0ull;

// Reduces the values of a block in a fixed tree; the result is valid in thread 0.
template <class T, class Join>
__device__ T reduce_block(T value, Join join) {
    __shared__ T values[kThreads];
    values[threadIdx.x] = value;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();  // values of the previous round are written
        if (threadIdx.x < half) {
            values[threadIdx.x] = join(values[threadIdx.x], values[threadIdx.x + half]);
        }
    }
    return values[0];
}

// The 8-byte little-endian word at `index`, padded with `pad` beyond the end.
__device__ uint64_t load_word(const uint8_t* start, uint64_t bytes, uint64_t index, uint8_t pad) {
    const uint8_t* at = start + index * 8;
    if (index * 8 + 8 <= bytes && reinterpret_cast<uintptr_t>(at) % 8 == 0) {
        return *reinterpret_cast<const uint64_t*>(at);
    }
    uint64_t word = 0;
    for (int byte = 0; byte < 8; ++byte) {
        uint64_t value = index * 8 + byte < bytes ? at[byte] : pad;
        word |= value << (8 * byte);
    }
    return word;
}

// Words that a thread has in flight at a time, two per load.
constexpr int kLoads = 4;

// Calls `take` with every word and its index, in ascending order per thread. `packs` of two words
// can be loaded whole.
template <class Take>
__device__ void for_each_word(const uint8_t* start, uint64_t bytes, uint64_t packs, uint8_t pad,
                              Take take) {
    const Pack<uint64_t>* whole = reinterpret_cast<const Pack<uint64_t>*>(start);
    uint64_t step = grid_threads();
    uint64_t first = grid_thread();
    for (; first + (kLoads - 1) * step < packs; first += kLoads * step) {
        Pack<uint64_t> loaded[kLoads];
#pragma unroll
        for (int at = 0; at < kLoads; ++at) loaded[at] = whole[first + at * step];
#pragma unroll
        for (int at = 0; at < kLoads; ++at) {
            uint64_t index = 2 * (first + at * step);
            take(loaded[at].values[0], index);
            take(loaded[at].values[1], index + 1);
        }
    }
    for (; first < packs; first += step) {
        Pack<uint64_t> loaded = whole[first];
        take(loaded.values[0], 2 * first);
        take(loaded.values[1], 2 * first + 1);
    }
    uint64_t words = (bytes + 7) / 8;
    for (uint64_t index = 2 * packs + grid_thread(); index < words; index += step) {
        take(load_word(start, bytes, index, pad), index);
    }
}

__global__ void first_byte_not_kernel(const uint8_t* start, uint64_t bytes, uint64_t packs,
                                      uint8_t value, uint64_t* partials) {
    uint64_t pattern = value * 0x0101010101010101ull;
    uint64_t first = kNone;
    for_each_word(start, bytes, packs, value, [&](uint64_t word, uint64_t index) {
        uint64_t difference = word ^ pattern;
        if (difference != 0 && first == kNone) {
            first = index * 8 + (__ffsll(static_cast<long long>(difference)) - 1) / 8;
        }
    });
    first = reduce_block(first, [](uint64_t a, uint64_t b) { return a < b ? a : b; });
    if (threadIdx.x == 0) partials[blockIdx.x] = first;
}

__global__ void checksum_kernel(const uint8_t* start, uint64_t bytes, uint64_t packs,
                                uint64_t* partials) {
    uint64_t sum = 0;
    for_each_word(start, bytes, packs, 0, [&](uint64_t word, uint64_t index) {
        sum += mix(word + (index + 1) * kIncrement);
    });
    sum = reduce_block(sum, [](uint64_t a, uint64_t b) { return a + b; });
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

struct Partial {
    double max_abs;
    double sum_squared_error;
    double sum_squared_reference;
    uint64_t non_finite;
    uint64_t over_limit;
    uint64_t first_over;
};

__host__ __device__ Partial join(const Partial& a, const Partial& b) {
    return {a.max_abs > b.max_abs ? a.max_abs : b.max_abs,
            a.sum_squared_error + b.sum_squared_error,
            a.sum_squared_reference + b.sum_squared_reference,
            a.non_finite + b.non_finite,
            a.over_limit + b.over_limit,
            a.first_over < b.first_over ? a.first_over : b.first_over};
}

template <class Type>
__device__ void compare_element(typename Type::Storage actual_stored,
                                typename Type::Storage reference_stored, uint64_t index,
                                double absolute, double relative, Partial& sum) {
    double actual = Type::decode(actual_stored);
    double reference = Type::decode(reference_stored);
    double error = fabs(actual - reference);
    bool finite = isfinite(actual);
    // Intrinsics: with a contracted multiply-add, borderline elements would be judged differently
    // from the CPU. Comparison with NaN is false, so a NaN on either side is over the limit.
    bool allowed = finite && error <= __dadd_rn(absolute, __dmul_rn(relative, fabs(reference)));
    if (!finite) sum.non_finite += 1;
    if (!allowed) {
        sum.over_limit += 1;
        if (index < sum.first_over) sum.first_over = index;
    }
    if (finite && isfinite(reference)) {
        if (error > sum.max_abs) sum.max_abs = error;
        sum.sum_squared_error += error * error;
        sum.sum_squared_reference += reference * reference;
    }
}

template <class Type>
__global__ void compare_kernel(const typename Type::Storage* actuals,
                               const typename Type::Storage* references, uint64_t elements,
                               uint64_t packs, double absolute, double relative,
                               Partial* partials) {
    using In = Pack<typename Type::Storage>;
    Partial sum = {0, 0, 0, 0, 0, kNone};
    for (uint64_t pack = grid_thread(); pack < packs; pack += grid_threads()) {
        In actual = reinterpret_cast<const In*>(actuals)[pack];
        In reference = reinterpret_cast<const In*>(references)[pack];
#pragma unroll
        for (int at = 0; at < In::kSize; ++at) {
            compare_element<Type>(actual.values[at], reference.values[at], pack * In::kSize + at,
                                  absolute, relative, sum);
        }
    }
    for (uint64_t index = packs * In::kSize + grid_thread(); index < elements;
         index += grid_threads()) {
        compare_element<Type>(actuals[index], references[index], index, absolute, relative, sum);
    }
    sum = reduce_block(sum, [](const Partial& a, const Partial& b) { return join(a, b); });
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// The partial results of all blocks, in block order. Waits for the stream.
template <class T>
std::vector<T> read_partials(size_t scratch, size_t stream) {
    std::vector<T> partials(kBlocks);
    check(cudaMemcpyAsync(partials.data(), as_pointer<T>(scratch), kBlocks * sizeof(T),
                          cudaMemcpyDeviceToHost, as_stream(stream)),
          "copy of partial results");
    check(cudaStreamSynchronize(as_stream(stream)), "wait for partial results");
    return partials;
}

}  // namespace

size_t scratch_bytes() { return kBlocks * sizeof(Partial); }

uint64_t first_byte_not(size_t address, uint64_t bytes, uint8_t value, size_t scratch,
                        size_t stream) {
    first_byte_not_kernel<<<kBlocks, kThreads, 0, as_stream(stream)>>>(
        as_pointer<uint8_t>(address), bytes, packs<uint64_t>(address, bytes / 8), value,
        as_pointer<uint64_t>(scratch));
    check(cudaGetLastError(), "first_byte_not");
    std::vector<uint64_t> partials = read_partials<uint64_t>(scratch, stream);
    return std::min(*std::min_element(partials.begin(), partials.end()), bytes);
}

uint64_t checksum_sum(size_t address, uint64_t bytes, size_t scratch, size_t stream) {
    checksum_kernel<<<kBlocks, kThreads, 0, as_stream(stream)>>>(
        as_pointer<uint8_t>(address), bytes, packs<uint64_t>(address, bytes / 8),
        as_pointer<uint64_t>(scratch));
    check(cudaGetLastError(), "checksum");
    uint64_t sum = 0;
    for (uint64_t partial : read_partials<uint64_t>(scratch, stream)) sum += partial;
    return sum;
}

void compare(size_t actual, size_t reference, uint64_t elements, uint32_t dtype, double absolute,
             double relative, size_t scratch, size_t stream, double& max_abs,
             double& sum_squared_error, double& sum_squared_reference, uint64_t& non_finite,
             uint64_t& over_limit, uint64_t& first_over) {
    dispatch(dtype, [&](auto type) {
        using Type = decltype(type);
        using Storage = typename Type::Storage;
        uint64_t whole = reference % kPackBytes == 0 ? packs<Storage>(actual, elements) : 0;
        compare_kernel<Type><<<kBlocks, kThreads, 0, as_stream(stream)>>>(
            as_pointer<Storage>(actual), as_pointer<Storage>(reference), elements, whole, absolute,
            relative, as_pointer<Partial>(scratch));
    });
    check(cudaGetLastError(), "compare");
    Partial sum = {0, 0, 0, 0, 0, elements};
    for (const Partial& partial : read_partials<Partial>(scratch, stream)) sum = join(sum, partial);
    max_abs = sum.max_abs;
    sum_squared_error = sum.sum_squared_error;
    sum_squared_reference = sum.sum_squared_reference;
    non_finite = sum.non_finite;
    over_limit = sum.over_limit;
    first_over = sum.first_over;
}

}  // namespace harness_device
