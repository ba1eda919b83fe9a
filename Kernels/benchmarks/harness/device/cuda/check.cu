// Scans over memory: canary scan, checksum, comparison; and copies of many pieces at a time.
//
// Scans reduce in two steps without atomics: each block writes one partial result to scratch,
// and one more block combines them in a fixed order, so sums of doubles are reproducible.

#include "Kernels/benchmarks/harness/device/cuda/kernels.h"
#include "Kernels/benchmarks/harness/device/cuda/launch.cuh"

namespace harness_device {
namespace {

constexpr uint64_t kNone = ~0ull;

// What a scan makes of two partial results, and of none.
struct Least {
    using Value = uint64_t;
    static __device__ Value none() { return kNone; }
    static __device__ Value join(Value a, Value b) { return a < b ? a : b; }
};

struct Sum {
    using Value = uint64_t;
    static __device__ Value none() { return 0; }
    static __device__ Value join(Value a, Value b) { return a + b; }
};

struct Found {
    using Value = NonFinite;
    static __device__ Value none() { return {0, kNone}; }
    static __device__ Value join(const Value& a, const Value& b) {
        return {a.count + b.count, a.first < b.first ? a.first : b.first};
    }
};

struct Compared {
    using Value = Comparison;
    static __device__ Value none() { return {0, 0, 0, 0, 0, kNone}; }
    static __device__ Value join(const Value& a, const Value& b) {
        return {a.max_abs > b.max_abs ? a.max_abs : b.max_abs,
                a.sum_squared_error + b.sum_squared_error,
                a.sum_squared_reference + b.sum_squared_reference,
                a.non_finite + b.non_finite,
                a.over_limit + b.over_limit,
                a.first_over < b.first_over ? a.first_over : b.first_over};
    }
};

// Reduces the values of a block in a fixed tree; the result is valid in thread 0.
template <class Scan>
__device__ typename Scan::Value reduce_block(const typename Scan::Value& value) {
    __shared__ typename Scan::Value values[kThreads];
    values[threadIdx.x] = value;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();  // values of the previous round are written
        if (threadIdx.x < half) {
            values[threadIdx.x] = Scan::join(values[threadIdx.x], values[threadIdx.x + half]);
        }
    }
    return values[0];
}

// Combines the partial results of each block's own `count`.
template <class Scan>
__global__ void join_kernel(const typename Scan::Value* partials, unsigned count,
                            typename Scan::Value* results) {
    typename Scan::Value value = Scan::none();
    for (unsigned at = threadIdx.x; at < count; at += kThreads) {
        value = Scan::join(value, partials[blockIdx.x * count + at]);
    }
    value = reduce_block<Scan>(value);
    if (threadIdx.x == 0) results[blockIdx.x] = value;
}

template <class Scan>
void join(size_t scratch, unsigned results, unsigned count, size_t address, size_t stream) {
    using Value = typename Scan::Value;
    join_kernel<Scan><<<results, kThreads, 0, as_stream(stream)>>>(
        as_pointer<Value>(scratch), count, as_pointer<Value>(address));
    check(cudaGetLastError(), "join");
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

// Where in memory the first byte of the word at `index` is that is not `value`.
__device__ uint64_t first_difference(uint64_t word, uint64_t index, uint8_t value) {
    uint64_t difference = word ^ value * 0x0101010101010101ull;
    if (difference == 0) return kNone;
    return index * 8 + (__ffsll(static_cast<long long>(difference)) - 1) / 8;
}

__global__ void first_byte_not_kernel(const uint8_t* start, uint64_t bytes, uint64_t packs,
                                      uint8_t value, uint64_t* partials) {
    uint64_t first = kNone;
    for_each_word(start, bytes, packs, value, [&](uint64_t word, uint64_t index) {
        first = Least::join(first, first_difference(word, index, value));
    });
    first = reduce_block<Least>(first);
    if (threadIdx.x == 0) partials[blockIdx.x] = first;
}

__global__ void checksum_kernel(const uint8_t* start, uint64_t bytes, uint64_t packs,
                                uint64_t* partials) {
    uint64_t sum = 0;
    for_each_word(start, bytes, packs, 0, [&](uint64_t word, uint64_t index) {
        sum += mix(word + (index + 1) * kIncrement);
    });
    sum = reduce_block<Sum>(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

template <class Type>
__global__ void non_finite_kernel(const uint8_t* start, uint64_t bytes, uint64_t packs,
                                  NonFinite* partials) {
    constexpr int kBytes = sizeof(typename Type::Storage);
    constexpr uint64_t kMask = Type::kNonFinite;
    NonFinite found = Found::none();
    for_each_word(start, bytes, packs, 0, [&](uint64_t word, uint64_t index) {
#pragma unroll
        for (int at = 0; at < 8 / kBytes; ++at) {
            if ((word >> (8 * kBytes * at) & kMask) != kMask) continue;
            found = Found::join(found, {1, index * (8 / kBytes) + at});
        }
    });
    found = reduce_block<Found>(found);
    if (threadIdx.x == 0) partials[blockIdx.x] = found;
}

// A piece per block.
__global__ void first_bytes_not_kernel(const Piece* pieces, uint8_t value, uint64_t* results) {
    const Piece piece = pieces[blockIdx.x];
    const uint8_t* start = reinterpret_cast<const uint8_t*>(piece.from);
    uint64_t first = kNone;
    for (uint64_t index = threadIdx.x; index < (piece.bytes + 7) / 8; index += kThreads) {
        uint64_t word = load_word(start, piece.bytes, index, value);
        first = Least::join(first, first_difference(word, index, value));
    }
    first = reduce_block<Least>(first);
    if (threadIdx.x == 0) results[blockIdx.x] = first;
}

// A piece per block.
__global__ void gather_kernel(const Piece* pieces, uint8_t* result) {
    const Piece piece = pieces[blockIdx.x];
    const uint8_t* from = reinterpret_cast<const uint8_t*>(piece.from);
    uint8_t* to = result + piece.to;
    const bool aligned = (piece.from | piece.to) % sizeof(uint4) == 0;
    const uint64_t packs = aligned ? piece.bytes / sizeof(uint4) : 0;
    for (uint64_t at = threadIdx.x; at < packs; at += kThreads) {
        reinterpret_cast<uint4*>(to)[at] = reinterpret_cast<const uint4*>(from)[at];
    }
    for (uint64_t at = packs * sizeof(uint4) + threadIdx.x; at < piece.bytes; at += kThreads) {
        to[at] = from[at];
    }
}

template <class Type>
__device__ void compare_element(typename Type::Storage actual_stored,
                                typename Type::Storage reference_stored, uint64_t index,
                                double absolute, double relative, Comparison& sum) {
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

// Block row y compares the tile of `step` elements there.
template <class Type>
__global__ void compare_kernel(const typename Type::Storage* actuals,
                               const typename Type::Storage* references, uint64_t elements,
                               uint64_t step, bool aligned, double absolute, double relative,
                               Comparison* partials) {
    using In = Pack<typename Type::Storage>;
    uint64_t start = blockIdx.y * step;
    uint64_t end = min(step, elements - start);
    uint64_t packs = aligned && start % In::kSize == 0 ? end / In::kSize : 0;
    actuals += start;
    references += start;
    Comparison sum = Compared::none();
    for (uint64_t pack = grid_thread(); pack < packs; pack += grid_threads()) {
        In actual = reinterpret_cast<const In*>(actuals)[pack];
        In reference = reinterpret_cast<const In*>(references)[pack];
#pragma unroll
        for (int at = 0; at < In::kSize; ++at) {
            compare_element<Type>(actual.values[at], reference.values[at], pack * In::kSize + at,
                                  absolute, relative, sum);
        }
    }
    for (uint64_t index = packs * In::kSize + grid_thread(); index < end; index += grid_threads()) {
        compare_element<Type>(actuals[index], references[index], index, absolute, relative, sum);
    }
    sum = reduce_block<Compared>(sum);
    if (threadIdx.x == 0) partials[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

}  // namespace

size_t scratch_bytes() { return kBlocks * sizeof(Comparison); }

void first_byte_not(size_t address, uint64_t bytes, uint8_t value, size_t scratch, size_t result,
                    size_t stream) {
    first_byte_not_kernel<<<kBlocks, kThreads, 0, as_stream(stream)>>>(
        as_pointer<uint8_t>(address), bytes, packs<uint64_t>(address, bytes / 8), value,
        as_pointer<uint64_t>(scratch));
    check(cudaGetLastError(), "first_byte_not");
    join<Least>(scratch, 1, kBlocks, result, stream);
}

void first_bytes_not(size_t pieces, uint32_t count, uint8_t value, size_t results, size_t stream) {
    if (count == 0) return;
    first_bytes_not_kernel<<<count, kThreads, 0, as_stream(stream)>>>(
        as_pointer<Piece>(pieces), value, as_pointer<uint64_t>(results));
    check(cudaGetLastError(), "first_bytes_not");
}

void non_finite(size_t address, uint64_t elements, uint32_t dtype, size_t scratch, size_t result,
                size_t stream) {
    dispatch_float(dtype, [&](auto type) {
        using Type = decltype(type);
        uint64_t bytes = elements * sizeof(typename Type::Storage);
        non_finite_kernel<Type><<<kBlocks, kThreads, 0, as_stream(stream)>>>(
            as_pointer<uint8_t>(address), bytes, packs<uint64_t>(address, bytes / 8),
            as_pointer<NonFinite>(scratch));
    });
    check(cudaGetLastError(), "non_finite");
    join<Found>(scratch, 1, kBlocks, result, stream);
}

void checksum_sum(size_t address, uint64_t bytes, size_t scratch, size_t result, size_t stream) {
    checksum_kernel<<<kBlocks, kThreads, 0, as_stream(stream)>>>(
        as_pointer<uint8_t>(address), bytes, packs<uint64_t>(address, bytes / 8),
        as_pointer<uint64_t>(scratch));
    check(cudaGetLastError(), "checksum");
    join<Sum>(scratch, 1, kBlocks, result, stream);
}

void gather(size_t pieces, uint32_t count, size_t result, size_t stream) {
    if (count == 0) return;
    gather_kernel<<<count, kThreads, 0, as_stream(stream)>>>(as_pointer<Piece>(pieces),
                                                             as_pointer<uint8_t>(result));
    check(cudaGetLastError(), "gather");
}

void compare(size_t actual, size_t reference, uint64_t elements, uint64_t step, uint32_t dtype,
             double absolute, double relative, size_t scratch, size_t results, size_t stream) {
    if (elements == 0) return;
    uint64_t tiles = (elements + step - 1) / step;
    if (tiles > kBlocks) throw std::runtime_error("too many tiles to compare");
    dim3 grid(kBlocks / tiles, tiles);
    bool aligned = actual % kPackBytes == 0 && reference % kPackBytes == 0;
    dispatch(dtype, [&](auto type) {
        using Type = decltype(type);
        using Storage = typename Type::Storage;
        compare_kernel<Type><<<grid, kThreads, 0, as_stream(stream)>>>(
            as_pointer<Storage>(actual), as_pointer<Storage>(reference), elements, step, aligned,
            absolute, relative, as_pointer<Comparison>(scratch));
    });
    check(cudaGetLastError(), "compare");
    join<Compared>(scratch, grid.y, grid.x, results, stream);
}

}  // namespace harness_device
