// What every row kernel here shares: its geometry argument, the walk over rows, and the choice of
// an instantiation from a Config.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "Kernels/device/launch.h"
#include "Kernels/device/row_ring.cuh"
#include "Kernels/device/row_slice.cuh"
#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// The part of a Config that kernels read, with the shape.
struct Geometry {
    std::int64_t rows;
    int columns;
    int cluster_blocks;
    int chunks;
    int stages;
    float per_column;

    // Blocks in clusters, whose size is a power of two: a division would keep the first load
    // waiting.
    __device__ std::int64_t clusters(unsigned blocks) const {
        return blocks >> (__ffs(cluster_blocks) - 1);
    }
};

// The rows of one thread: all threads of a block take the same number of steps, so that they meet
// at barriers; a step past the last row is not `active`.
struct RowWalk {
    std::int64_t row;
    std::int64_t first_of_block;
    std::int64_t step;
    std::int64_t rows;

    __device__ explicit RowWalk(const Geometry& geometry)
        : first_of_block(geometry.clusters(blockIdx.x) * blockDim.y),
          step(geometry.clusters(gridDim.x) * blockDim.y),
          rows(geometry.rows) {
        row = first_of_block + threadIdx.y;
    }
    __device__ bool more() const { return first_of_block < rows; }
    __device__ bool active() const { return row < rows; }
    __device__ void next() {
        first_of_block += step;
        row += step;
    }
};

// How rows come into registers.
enum class Rows {
    kAny,      // from memory, at any address
    kAligned,  // from memory, in whole packets
    kStaged,   // through shared memory, in whole packets (row_ring.cuh)
};

// One instantiation of a row kernel.
template <class Element, int kVectorCount, Rows kRows>
struct Variant {
    using T = Element;
    static constexpr int kVectors = kVectorCount;
    static constexpr bool kAligned = kRows != Rows::kAny;
    static constexpr bool kStaged = kRows == Rows::kStaged;
    // Only kernels with the most vectors walk a row in chunks; for the others a row is one chunk.
    static constexpr bool kChunked = kVectors == kMostVectors;
    using Slice = device::RowSlice<T, kVectors, kAligned>;
    static constexpr int kPer = Slice::kPer;
};

__device__ inline unsigned char* dynamic_shared() {
    extern __shared__ __align__(128) unsigned char bytes[];
    return bytes;
}

// Where a kernel reads the weight: where rows are staged, a copy in shared memory behind the ring,
// because that leaves little of the L1. The caller's next barrier completes it.
template <class V, int kTensors>
__device__ const void* columns_for(const void* vector_of_columns, bool wide,
                                   const Geometry& geometry) {
    if constexpr (!V::kStaged) {
        return vector_of_columns;
    } else {
        using T = typename V::T;
        const int columns = geometry.columns;
        const int ring = geometry.stages * kTensors * columns * static_cast<int>(sizeof(T));
        unsigned char* copy = dynamic_shared() + ring;
        const int bytes = columns * static_cast<int>(wide ? sizeof(float) : sizeof(T));
        const uint4* from = static_cast<const uint4*>(vector_of_columns);
        for (int i = threadIdx.x; i < bytes / kPacketBytes; i += blockDim.x) {
            reinterpret_cast<uint4*>(copy)[i] = from[i];
        }
        return copy;
    }
}

// The elements of such a vector that belong to one packet of a row.
template <class V>
__device__ void column_values(const typename V::Slice& slice, const void* vector_of_columns,
                              bool wide, int chunk, int vector, typename V::Slice::Values& values) {
    if constexpr (!V::kStaged) {
        slice.shared_values(vector_of_columns, wide, chunk, vector, values);
    } else {
        const int begin = slice.first(chunk, vector);
        if (!slice.holds(begin)) return;
        if (sizeof(typename V::T) == 4 || wide) {
            const float4* quads = static_cast<const float4*>(vector_of_columns) + begin / 4;
#pragma unroll
            for (int quad = 0; quad < V::kPer / 4; ++quad) {
                const float4 four = quads[quad];
                values[4 * quad] = four.x;
                values[4 * quad + 1] = four.y;
                values[4 * quad + 2] = four.z;
                values[4 * quad + 3] = four.w;
            }
        } else {
            const uint4* packets = static_cast<const uint4*>(vector_of_columns);
            device::unpack<typename V::T>(packets[begin / V::kPer], values);
        }
    }
}

// A thread's share of a vector of columns (weight, bias). kEarly: asked for with the row and
// unpacked when it is used, so that a row waits for memory once; unless it is wider than the row,
// which would take too many registers. Otherwise it is read where it is used.
template <class V, bool kEarly>
class Columns {
  public:
    using T = typename V::T;
    using Slice = typename V::Slice;
    static_assert(!kEarly || (V::kAligned && !V::kChunked), "a thread's columns must stay");

    __device__ Columns(const void* vector_of_columns, bool wide)
        : columns_(vector_of_columns), wide_(wide) {}

    // After the loads of the row.
    __device__ void fetch(const Slice& slice) {
        if constexpr (kEarly) {
            // One condition a load and no branch, across which the compiler would move the wait for
            // the row.
            const bool early = is_early();
            const T* elements = static_cast<const T*>(columns_);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                const int begin = slice.first(0, vector);
                if (early && slice.holds(begin)) {
                    packets_[vector] = device::ptx::load_16_constant(elements + begin);
                }
            }
        }
    }
    __device__ void values(const Slice& slice, int chunk, int vector,
                           typename Slice::Values& values) const {
        if constexpr (kEarly) {
            if (is_early()) return device::unpack<T>(packets_[vector], values);
        }
        slice.shared_values(columns_, wide_, chunk, vector, values);
    }

  private:
    __device__ bool is_early() const { return sizeof(T) == sizeof(float) || !wide_; }

    const void* columns_;
    const bool wide_;
    uint4 packets_[kEarly ? V::kVectors : 1];
};

// A thread's sum is kept in parts, because each addition waits for the one before.
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

// Where a kernel's rows come from: memory, or a ring of rows in shared memory.
template <class V, int kTensors>
class RowSource {
  public:
    using T = typename V::T;
    using Slice = typename V::Slice;

    __device__ RowSource(const Geometry& geometry, const void* const (&tensors)[kTensors],
                         const RowWalk&)
        : columns_(geometry.columns) {
#pragma unroll
        for (int tensor = 0; tensor < kTensors; ++tensor) {
            tensors_[tensor] = static_cast<const T*>(tensors[tensor]);
        }
    }

    // The address of a row; it tells the alignment, and kAny reads through it.
    __device__ const T* row(int tensor, const RowWalk& walk) const {
        return tensors_[tensor] + walk.row * columns_;
    }
    // Before the first load of a row.
    __device__ void wait() {}
    __device__ void load(int tensor, const RowWalk& walk, const Slice& slice, int chunk,
                         typename Slice::Packets& packets, float outside = 0.0f) const {
        slice.load(row(tensor, walk), chunk, packets, outside);
    }
    // One element of a row; `wait` comes first.
    __device__ float element(int tensor, const RowWalk& walk, int column) const {
        return device::to_float(row(tensor, walk)[column]);
    }
    // After the last load of a row, when the block's threads have met since.
    __device__ void next() {}

  private:
    const T* tensors_[kTensors];
    const int columns_;
};

template <class Element, int kVectors, int kTensors>
class RowSource<Variant<Element, kVectors, Rows::kStaged>, kTensors> {
  public:
    using T = Element;
    using Slice = device::RowSlice<T, kVectors, true>;

    __device__ RowSource(const Geometry& geometry, const void* const (&tensors)[kTensors],
                         const RowWalk& walk)
        : ring_(storage(), dynamic_shared(), tensors,
                static_cast<uint32_t>(geometry.columns) * sizeof(T), geometry.stages,
                {walk.row, walk.step, walk.rows}) {}

    __device__ const T* row(int, const RowWalk&) const { return nullptr; }
    __device__ void wait() { ring_.wait(); }
    __device__ void load(int tensor, const RowWalk&, const Slice& slice, int chunk,
                         typename Slice::Packets& packets, float outside = 0.0f) const {
        slice.load_with(chunk, packets, outside, [&](int begin) {
            return *reinterpret_cast<const uint4*>(ring_.template row<T>(tensor) + begin);
        });
    }
    __device__ float element(int tensor, const RowWalk&, int column) const {
        return device::to_float(ring_.template row<T>(tensor)[column]);
    }
    __device__ void next() { ring_.next(); }

  private:
    static __device__ device::RingStorage& storage() {
        __shared__ device::RingStorage storage;
        return storage;
    }

    device::RowRing<kTensors> ring_;
};

template <RowUse kUse, class T, class Function>
void dispatch_vectors(const Config& config, Function&& function) {
    if (config.stages > 0) {
        if constexpr (may_stage(kUse)) {
            return function(Variant<T, kStagedVectors, Rows::kStaged>{});
        }
    } else if (!config.aligned) {
        if (config.vectors == 2) return function(Variant<T, 2, Rows::kAny>{});
        if (config.vectors == 8) return function(Variant<T, 8, Rows::kAny>{});
    } else {
        if (config.vectors == 1) return function(Variant<T, 1, Rows::kAligned>{});
        if (config.vectors == 2) return function(Variant<T, 2, Rows::kAligned>{});
        if (config.vectors == 4) return function(Variant<T, 4, Rows::kAligned>{});
        if (config.vectors == 8) return function(Variant<T, 8, Rows::kAligned>{});
    }
    throw std::invalid_argument("no kernel for " + describe(config));
}

template <class Function>
void dispatch_type(ElementType type, Function&& function) {
    switch (type) {
        case ElementType::kF32:
            return function(float{});
        case ElementType::kF16:
            return function(__half{});
        case ElementType::kBf16:
            return function(__nv_bfloat16{});
    }
    throw std::invalid_argument("unknown element type");
}

template <RowUse kUse, class Function>
void dispatch(ElementType type, const Config& config, Function&& function) {
    dispatch_type(
        type, [&](auto element) { dispatch_vectors<kUse, decltype(element)>(config, function); });
}

template <class Params>
Shape shape_of(const Params& params) {
    return {params.rows, params.columns, element_bytes(params.type)};
}

template <class Params>
Geometry geometry_of(const Params& params, const Config& config) {
    return {params.rows,   params.columns, config.cluster_blocks,
            config.chunks, config.stages,  1.0f / static_cast<float>(params.columns)};
}

inline Machine machine() { return {device::multiprocessors()}; }

inline device::Launch launch_shape(const Config& config, const Shape& rows, RowUse use) {
    device::Launch shape;
    shape.shared_bytes = static_cast<std::size_t>(shared_bytes(config, rows, use));
    shape.grid = dim3(static_cast<unsigned>(config.blocks));
    shape.block = dim3(static_cast<unsigned>(config.threads_per_row),
                       static_cast<unsigned>(config.rows_per_block));
    shape.cluster_blocks = config.cluster_blocks;
    return shape;
}

// Validates and launches; `kernel_of(variant)` is the kernel's instantiation for a Variant.
template <RowUse kUse, class Params, class Arguments, class KernelOf>
void launch_rows(const char* name, const Params& params, const Config& config, cudaStream_t stream,
                 const Arguments& arguments, KernelOf&& kernel_of) {
    const Shape shape = shape_of(params);
    validate(config, shape, kUse);
    dispatch<kUse>(params.type, config, [&](auto variant) {
        device::launch(name, kernel_of(variant), launch_shape(config, shape, kUse), stream,
                       arguments);
    });
}

inline void require_aligned(const char* name, const void* address) {
    if (reinterpret_cast<std::uintptr_t>(address) % kPacketBytes != 0) {
        throw std::invalid_argument(std::string(name) + " is not aligned to 16 bytes");
    }
}

inline void require_weight_type(ElementType type, ElementType weight_type) {
    if (weight_type != ElementType::kF32 && weight_type != type) {
        throw std::invalid_argument("a weight must be fp32 or of the activations' type");
    }
}

}  // namespace norms
