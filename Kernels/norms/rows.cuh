// Shared by every row kernel: its geometry argument, the walk over rows, and the choice of an
// instantiation from a Config.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "Kernels/device/built.h"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/machine.h"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/row_slice.cuh"
#include "Kernels/norms/block_team.cuh"
#include "Kernels/norms/norms.h"
#include "Kernels/norms/shifted_slice.cuh"
#include "Kernels/norms/word_slice.cuh"

namespace norms {

// The part of a Config that kernels read, with the shape.
struct Geometry {
    std::int64_t rows;
    int columns;
    int cluster_blocks;
    int chunks;
    int stages;
    float per_column;

    // Cluster sizes are a power of two: a division would delay the first load.
    __device__ std::int64_t clusters(unsigned blocks) const {
        return blocks >> (__ffs(cluster_blocks) - 1);
    }
};

// A kernel's argument: an op's parameters, and how its rows are cut. As two arguments they compile
// to different schedules.
template <class Params>
struct Cut : Params {
    Geometry geometry;
};

// Columns of sums over rows, of which threads store whole packets.
template <class V>
__device__ int kept_columns(const Geometry& geometry) {
    return V::kAligned ? geometry.columns : padded(geometry.columns);
}

// Who owns a row, and how it gets into registers.
enum class Rows {
    kAny,          // any team, from memory, at any address
    kWords,        // the same in words of 4 bytes
    kLongWords,    // the same of 8 bytes
    kAligned,      // any team, from memory, in whole packets
    kAlone,        // a block that has no other row, from memory, in whole packets
    kParked,       // the same, but it stays in shared memory and is read from there twice
    kStaged,       // a persistent block, through shared memory (row_ring.cuh), in whole packets
    kStagedAny,    // the same at any address
    kStagedShare,  // a persistent cluster, a share of the row in each block, in whole packets
    kWide,         // a block that has no other row, from memory, in packets of 32 bytes
    kStreamed,     // blocks, from memory, in whole packets, chunk by chunk
    kStreamedAny,  // the same at any address
    kHeld,         // a cluster that has no other row, through shared memory, in whole packets
};

// One instantiation of a row kernel.
template <class Element, int kVectorCount, Rows kRows, bool kIsLean = false>
struct Variant {
    using T = Element;
    static constexpr int kVectors = kVectorCount;
    static constexpr bool kLean = kIsLean;
    static constexpr bool kWords = kRows == Rows::kWords || kRows == Rows::kLongWords;
    static constexpr bool kAligned =
        kRows != Rows::kAny && !kWords && kRows != Rows::kStreamedAny && kRows != Rows::kStagedAny;
    static constexpr bool kParked = kRows == Rows::kParked;
    static constexpr bool kWide = kRows == Rows::kWide;
    static constexpr bool kAlone = kRows == Rows::kAlone || kParked || kWide;
    static constexpr bool kShared = kRows == Rows::kStagedShare;
    static constexpr bool kStaged = kRows == Rows::kStaged || kRows == Rows::kStagedAny || kShared;
    // Whether a thread has the same columns in every row.
    static constexpr bool kKeepsColumns = kAligned || kStaged;
    static constexpr bool kHeld = kRows == Rows::kHeld;
    // Only these walk a row in chunks; for the others a row is one chunk.
    static constexpr bool kChunked = kHeld || kRows == Rows::kStreamed ||
                                     kRows == Rows::kStreamedAny ||
                                     (!kAligned && kVectors == kMostVectors);
    using Team = std::conditional_t<
        kShared, ShareTeam,
        std::conditional_t<kAlone || kRows == Rows::kStaged, BlockTeam, device::RowTeam>>;
    using Word = std::conditional_t<kRows == Rows::kLongWords, uint2, uint32_t>;
    using Slice =
        std::conditional_t<kWords, WordSlice<T, kVectors, Word>,
                           std::conditional_t<kRows == Rows::kStagedAny, ShiftedSlice<T, kVectors>,
                                              device::RowSlice<T, kVectors, kAligned, kWide>>>;
    static constexpr int kPer = Slice::kPer;
};

// What its kernel is compiled for.
template <class V, RowUse kUse = RowUse::kOneRow>
constexpr int kMaxThreads = V::kAligned ? max_threads(V::kVectors, kUse) : kMaxUnalignedThreads;
template <class V, RowUse kUse = RowUse::kOneRow>
constexpr int kMinBlocks =
    V::kAligned ? min_blocks(V::kVectors, kUse) : min_unaligned_blocks(V::kChunked, kUse);

// The same for kernels that load a row ahead: what is under way does not wait for the edges of
// rows.
template <class V>
struct EdgesApart : V {
    using Slice = device::RowSlice<typename V::T, V::kVectors, V::kAligned, V::kWide, true>;
};

// The rows of one thread: all threads of a block take the same number of steps, so that they meet
// at barriers; a step past the last row is not `active`.
template <class V>
struct RowWalk {
    std::int64_t row;
    std::int64_t first_of_block;
    std::int64_t step;
    std::int64_t rows;
    int last_chunk;

    __device__ explicit RowWalk(const Geometry& geometry)
        : rows(geometry.rows), last_chunk(V::kChunked ? geometry.chunks - 1 : 0) {
        if constexpr (V::kAlone) {
            first_of_block = blockIdx.x;
            step = gridDim.x;
            row = first_of_block;
        } else {
            first_of_block = geometry.clusters(blockIdx.x) * blockDim.y;
            step = geometry.clusters(gridDim.x) * blockDim.y;
            row = first_of_block + threadIdx.y;
        }
    }
    __device__ bool more() const { return V::kAlone ? !done_ : first_of_block < rows; }
    __device__ bool active() const { return V::kAlone || row < rows; }
    __device__ void next() {
        done_ = true;
        first_of_block += step;
        row += step;
    }

  private:
    bool done_ = false;
};

__device__ inline unsigned char* dynamic_shared() {
    extern __shared__ __align__(128) unsigned char bytes[];
    return bytes;
}

// A thread's share of a column vector (weight, bias). kEarly: loaded with the row and unpacked when
// used, so that a row waits for memory once; unless it is wider than the row, which would take too
// many registers. Otherwise it is loaded where it is used.
template <class V, bool kEarly>
class Columns {
  public:
    using T = typename V::T;
    using Slice = typename V::Slice;
    static_assert(!kEarly || !V::kChunked, "a thread's columns must not change");

    __device__ Columns(const void* vector_of_columns, bool wide)
        : columns_(vector_of_columns), wide_(wide) {}

    // After the loads of the row.
    __device__ void fetch(const Slice& slice) {
        if constexpr (kEarly) {
            // One predicate per load and no branch, across which the compiler would move the wait
            // for the row.
            const bool early = is_narrow();
            const T* elements = static_cast<const T*>(columns_);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                if constexpr (V::kWords) {
                    packets_[vector] = slice.shared_packet(elements, vector, early);
                } else if constexpr (!V::kAligned) {
                    slice.shared_values(columns_, wide_, 0, vector, values_[vector]);
                } else if (early && slice.holds(slice.first(0, vector))) {
                    const T* from = elements + slice.first(0, vector);
                    packets_[vector] = device::ptx::load_16_constant(from);
                }
            }
        }
    }
    __device__ void values(const Slice& slice, int chunk, int vector,
                           typename Slice::Values& values) const {
        if constexpr (V::kWords) {
            static_assert(kEarly, "few rows wait for memory once");
            if (is_narrow()) return device::unpack<T>(packets_[vector], values);
            return slice.shared_floats(static_cast<const float*>(columns_), vector, values);
        } else if constexpr (kEarly && !V::kAligned) {
#pragma unroll
            for (int i = 0; i < V::kPer; ++i) values[i] = values_[vector][i];
            return;
        } else if constexpr (kEarly) {
            if (is_narrow()) return device::unpack<T>(packets_[vector], values);
        } else if constexpr (!V::kAligned && V::kChunked) {
            // With many rows a load per element would take longer than these.
            const T* elements = static_cast<const T*>(columns_);
            if (is_narrow()) {
                return device::unpack<T>(slice.shared_packet(elements, chunk, vector), values);
            }
        }
        if constexpr (!V::kWords) slice.shared_values(columns_, wide_, chunk, vector, values);
    }
    // Stores a packet of the row times `factor` and the columns to `to`.
    __device__ void store_scaled(const Slice& slice, int chunk, int vector, const uint4& packet,
                                 float factor, T* to) const {
        typename Slice::Values elements;
        typename Slice::Values scales;
        device::unpack<T>(packet, elements);
        values(slice, chunk, vector, scales);
#pragma unroll
        for (int element = 0; element < V::kPer; ++element) {
            elements[element] = elements[element] * factor * scales[element];
        }
        slice.store(to, chunk, vector, elements);
    }

  private:
    __device__ bool is_narrow() const { return sizeof(T) == sizeof(float) || !wide_; }

    const void* columns_;
    const bool wide_;
    static constexpr bool kPacked = V::kAligned || V::kWords;
    uint4 packets_[kEarly && kPacked ? V::kVectors : 1];
    typename Slice::Values values_[kEarly && !kPacked ? V::kVectors : 1];
};

// A thread's sum is kept in parts, because each addition depends on the one before.
constexpr int kChains = 4;

template <int kPer>
__device__ void add_squares(const float (&values)[kPer], float (&sums)[kChains]) {
#pragma unroll
    for (int element = 0; element < kPer; ++element) {
        float& sum = sums[element % kChains];
        sum = fmaf(values[element], values[element], sum);
    }
}

__device__ inline device::Sum sum_of(const float (&sums)[kChains]) {
    return {(sums[0] + sums[1]) + (sums[2] + sums[3])};
}

// A block's part of a row whose other blocks it never meets: as a RowTeam, without reductions.
template <class V>
class RowPart {
  public:
    __device__ explicit RowPart(const Geometry& geometry)
        : blocks_(V::kAlone ? 1 : geometry.cluster_blocks) {}

    __device__ int place() const {
        return static_cast<int>((blockIdx.x & (blocks_ - 1)) * blockDim.x + threadIdx.x);
    }
    __device__ int threads() const { return static_cast<int>(blocks_ * blockDim.x); }

  private:
    const int blocks_;
};

// The address of a row, hidden from the compiler, which would work it out again for each packet.
template <class V, class T>
__device__ T* row_at(T* tensor, std::int64_t row, int columns) {
    T* address = tensor + row * columns;
    if (!V::kAlone) {
        device::ptx::hide(address);
        __builtin_assume(__isGlobal(address));
    }
    return address;
}

// The source of a kernel's rows: memory; staged_rows.cuh, parked_row.cuh and held_row.cuh have
// others.
template <class V, int kTensors>
class RowSource {
    static_assert(!V::kStaged && !V::kParked && !V::kHeld,
                  "rows in shared memory have a source of their own");

  public:
    using T = typename V::T;
    using Slice = typename V::Slice;

    __device__ RowSource(const Geometry& geometry, const void* const (&tensors)[kTensors],
                         const RowWalk<V>&, int = 0)
        : columns_(geometry.columns) {
#pragma unroll
        for (int tensor = 0; tensor < kTensors; ++tensor) {
            tensors_[tensor] = static_cast<const T*>(tensors[tensor]);
        }
    }

    // The address of a row; it gives the alignment, and kAny reads through it.
    __device__ const T* row(int tensor, const RowWalk<V>& walk) const {
        // Aligned chunks and second tensors have no registers for it.
        if constexpr (kTensors > 1 || (V::kAligned && V::kChunked)) {
            return tensors_[tensor] + walk.row * columns_;
        } else {
            return row_at<V>(tensors_[tensor], walk.row, columns_);
        }
    }
    // Before the first load of a row.
    __device__ void wait() {}
    __device__ void load(int tensor, const RowWalk<V>& walk, const Slice& slice, int chunk,
                         typename Slice::Packets& packets, float outside = 0.0f) const {
        slice.load(row(tensor, walk), chunk, packets, outside);
    }
    // Before a loaded row is used, and after each reduction: a parked row is loaded only here.
    __device__ void take(const Slice&, typename Slice::Packets&) const {}
    // One element of a row; `wait` comes first.
    __device__ float element(int tensor, const RowWalk<V>& walk, int column) const {
        return device::to_float(row(tensor, walk)[column]);
    }
    // After the last load of a row, once the block's threads have synchronised.
    __device__ void next() {}

  private:
    const T* tensors_[kTensors];
    const int columns_;
};

// The instantiation that a config names, of blocks that have no other row.
template <RowUse kUse, class T, Rows kTwo, Rows kFour, class Function>
auto dispatch_alone(const Config& config, Function&& function) {
    if (config.vectors == 2) {
        return function(Variant<T, 2, kTwo, lean(kUse, 2) == Lean::kAlways>{});
    }
    if constexpr (most_alone(kUse) == 8) {
        if (config.vectors == 8) return function(Variant<T, 8, Rows::kParked>{});
    }
    if constexpr (lean(kUse, 4) != Lean::kNever) {
        if (config.lean) return function(Variant<T, 4, kFour, true>{});
    }
    if constexpr (lean(kUse, 4) != Lean::kAlways) {
        if (config.vectors == 4) return function(Variant<T, 4, kFour>{});
    }
    device::refuse("no kernel for " + describe(config));
}

// The same, of rows in words.
template <RowUse kUse, class T, Rows kRows, class Function>
auto dispatch_words(int vectors, Function&& function) {
    if constexpr (most_words(kUse) == 4) {
        if (vectors == 4) return function(Variant<T, 4, kRows>{});
    }
    return function(Variant<T, 2, kRows>{});
}

// The same of all; `wide`: rows are packets of 32 bytes and this machine moves them.
template <RowUse kUse, class T, class Function>
auto dispatch_vectors(const Config& config, bool wide, Function&& function) {
    const int vectors = config.vectors;
    if constexpr (kUse == RowUse::kFewRows) {
        if (!config.aligned) {
            if (vectors == 2) return function(Variant<T, 2, Rows::kAny>{});
            return function(Variant<T, 4, Rows::kAny>{});
        }
        if (vectors == 2) return function(Variant<T, 2, Rows::kAlone>{});
        return function(Variant<T, 4, Rows::kAlone>{});
    } else if (config.stages > 0) {
        if constexpr (may_stage(kUse)) {
            if (!config.aligned) {
                if (vectors == 2) return function(Variant<T, 2, Rows::kStagedAny>{});
                if (vectors == 4) return function(Variant<T, 4, Rows::kStagedAny>{});
            }
            if (config.cluster_blocks > 1) {
                if (vectors == 2) return function(Variant<T, 2, Rows::kStagedShare>{});
                if (vectors == 4) return function(Variant<T, 4, Rows::kStagedShare>{});
            }
            if (vectors == 2) return function(Variant<T, 2, Rows::kStaged>{});
            if (vectors == 4) return function(Variant<T, 4, Rows::kStaged>{});
        }
    } else if (!config.aligned) {
        if constexpr (!accumulates(kUse)) {
            constexpr int kVectors = streamed_vectors(false);
            if (config.streamed) return function(Variant<T, kVectors, Rows::kStreamedAny>{});
        } else if (vectors == 8) {
            return function(Variant<T, 8, Rows::kAny>{});
        }
        if constexpr (may_take_words(kUse)) {
            if (config.word_bytes == 8)
                return dispatch_words<kUse, T, Rows::kLongWords>(vectors, function);
            if (config.word_bytes == 4)
                return dispatch_words<kUse, T, Rows::kWords>(vectors, function);
        }
        if (vectors == 2) return function(Variant<T, 2, Rows::kAny>{});
    } else if constexpr (accumulates(kUse)) {
        if (vectors == 1) return function(Variant<T, 1, Rows::kAligned>{});
        if (vectors == 2) return function(Variant<T, 2, Rows::kAligned>{});
        if (vectors == 4) return function(Variant<T, 4, Rows::kAligned>{});
    } else if (config.alone) {
        constexpr bool kParks = parks(kUse, 4);
        if constexpr (device::built(device::Arch::kBlackwell)) {
            constexpr Rows kFour = kParks ? Rows::kParked : Rows::kWide;
            if (wide) return dispatch_alone<kUse, T, Rows::kWide, kFour>(config, function);
        }
        constexpr Rows kFour = kParks ? Rows::kParked : Rows::kAlone;
        return dispatch_alone<kUse, T, Rows::kAlone, kFour>(config, function);
    } else if (config.held) {
        if constexpr (may_hold(kUse))
            return function(Variant<T, streamed_vectors(true), Rows::kHeld>{});
    } else {
        constexpr int kVectors = streamed_vectors(true);
        if (config.streamed) return function(Variant<T, kVectors, Rows::kStreamed>{});
        if (vectors == 4) return function(Variant<T, 4, Rows::kAligned>{});
    }
    device::refuse("no kernel for " + describe(config));
}

inline Config choose(const Matrix& matrix, RowUse use, bool in_place = false) {
    const Machine machine = {device::multiprocessors(), device::largest_clusters()};
    return choose(matrix, machine, use, in_place);
}

// `kernel_of(variant)` is the kernel's instantiation for a Variant.
template <RowUse kUse, class Params, class KernelOf>
device::Enqueue prepare_rows(const char* name, const Params& params, const Config& config,
                             KernelOf&& kernel_of, bool wide = false) {
    const Geometry geometry = {params.rows,           params.columns,
                               config.cluster_blocks, config.chunks,
                               config.stages,         1.0f / static_cast<float>(params.columns)};
    device::Launch shape =
        device::blocks_of(config.blocks, dim3(config.threads_per_row, config.rows_per_block));
    shape.shared_bytes = static_cast<std::size_t>(shared_bytes(config, params, kUse));
    shape.cluster_blocks = meets(kUse) ? config.cluster_blocks : 1;
    return device::dispatch_activations(params.dtype, [&](auto element) {
        return dispatch_vectors<kUse, decltype(element)>(config, wide, [&](auto variant) {
            return device::prepare(name, kernel_of(variant), shape, Cut<Params>{params, geometry});
        });
    });
}

struct Tensor {
    const char* name;
    const void* address;
};

inline void check(const Matrix& matrix, std::initializer_list<Tensor> aligned) {
    check(matrix);
    for (const Tensor& tensor : aligned) device::require_aligned(tensor.name, tensor.address);
}

// Whether rows of all these tensors are packets of 32 bytes, and this machine moves them.
inline bool is_wide(const Matrix& matrix, std::initializer_list<Tensor> tensors) {
    if constexpr (device::built(device::Arch::kBlackwell)) {
        if (device::current_machine().arch != device::Arch::kBlackwell) return false;
        if (std::int64_t{matrix.columns} * device::bytes_of(matrix.dtype) % 32 != 0) return false;
        for (const Tensor& tensor : tensors) {
            if (reinterpret_cast<std::uintptr_t>(tensor.address) % 32 != 0) return false;
        }
        return true;
    }
    return false;
}

// The same for ops with one kernel, whose tensors with columns must be `aligned`.
template <RowUse kUse, class Params, class KernelOf>
device::Enqueue prepare_rows(const char* name, const Params& params,
                             std::initializer_list<Tensor> aligned, KernelOf&& kernel_of) {
    check(params, aligned);
    return prepare_rows<kUse>(name, params, choose(params, kUse), kernel_of,
                              is_wide(params, aligned));
}

}  // namespace norms
