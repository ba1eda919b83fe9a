// Rows that come through a ring in shared memory (Rows::kStaged, Rows::kStagedAny), and the weight
// beside them.
#pragma once

#include "Kernels/norms/row_ring.cuh"
#include "Kernels/norms/rows.cuh"

namespace norms {

// Bytes of the ring; what is kept beside the rows lies behind it.
template <class V, int kTensors>
__device__ int ring_bytes(const Geometry& geometry) {
    const int row_bytes = geometry.columns * static_cast<int>(sizeof(typename V::T));
    return geometry.stages * kTensors * (V::kAligned ? row_bytes : slot_bytes(row_bytes));
}

// Where the first four of a packet's columns lie among those that are kept in fp32. The next four
// lie behind those of all packets, so that neighbouring threads read neighbouring quads.
template <class V>
__device__ int first_quad(int column) {
    return column / V::kPer;
}
template <class V>
__device__ int quad_step(const Geometry& geometry) {
    return kept_columns<V>(geometry) / V::kPer;
}

// Where a kernel reads the weight: if rows are staged, a copy in shared memory behind the ring,
// because the ring leaves little L1, and in fp32, which takes fewer instructions per row. The
// caller's next barrier completes it.
template <class V, int kTensors>
__device__ const void* columns_for(const void* vector_of_columns, bool wide,
                                   const Geometry& geometry) {
    if constexpr (!V::kStaged) {
        return vector_of_columns;
    } else {
        using T = typename V::T;
        float4* copy =
            reinterpret_cast<float4*>(dynamic_shared() + ring_bytes<V, kTensors>(geometry));
        const int step = quad_step<V>(geometry);
        const auto* floats = static_cast<const float*>(vector_of_columns);
        const auto* elements = static_cast<const T*>(vector_of_columns);
        for (int packet = threadIdx.x; packet < step; packet += blockDim.x) {
            const int begin = packet * V::kPer;
            typename V::Slice::Values values = {};
            if (!V::kAligned && begin + V::kPer > geometry.columns) {
#pragma unroll
                for (int element = 0; element < V::kPer; ++element) {
                    const int column = begin + element;
                    if (column >= geometry.columns) continue;
                    values[element] = wide ? floats[column] : device::to_float(elements[column]);
                }
            } else if (sizeof(T) == 4 || wide) {
                memcpy(values, __builtin_assume_aligned(floats + begin, 16), sizeof(values));
            } else {
                device::unpack<T>(device::ptx::load_16_constant(elements + begin), values);
            }
#pragma unroll
            for (int quad = 0; quad < V::kPer / 4; ++quad) {
                const float* four = values + 4 * quad;
                copy[quad * step + packet] = make_float4(four[0], four[1], four[2], four[3]);
            }
        }
        return copy;
    }
}

// The elements of such a vector that belong to one packet of a row.
template <class V>
__device__ void column_values(const typename V::Slice& slice, const void* vector_of_columns,
                              bool wide, int chunk, int vector, const Geometry& geometry,
                              typename V::Slice::Values& values) {
    if constexpr (!V::kStaged) {
        slice.shared_values(vector_of_columns, wide, chunk, vector, values);
    } else {
        const int begin = slice.first(chunk, vector);
        if (!slice.holds(begin)) return;
        const float4* quads = static_cast<const float4*>(vector_of_columns) + first_quad<V>(begin);
#pragma unroll
        for (int quad = 0; quad < V::kPer / 4; ++quad) {
            const float4 four = quads[quad * quad_step<V>(geometry)];
            memcpy(values + 4 * quad, &four, sizeof(four));
        }
    }
}

// Sums over rows of a thread's own columns, in shared memory behind the weight; no other thread
// touches them. Without kUsed it is nothing.
template <class V, bool kUsed>
class SharedSums {
  public:
    using Values = typename V::Slice::Values;

    template <class Team>
    __device__ SharedSums(const Team& team, const Geometry& geometry)
        : slice_(team, nullptr, geometry.columns, true), step_(quad_step<V>(geometry)) {
        if constexpr (kUsed) {
            first_byte_ = ring_bytes<V, 2>(geometry) +
                          kept_columns<V>(geometry) * static_cast<int>(sizeof(float));
            const Values zeros = {};
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) set(vector, zeros);
        }
    }

    __device__ void add(int vector, const Values& values) {
        if constexpr (kUsed) {
            Values sums = {};
            get(vector, sums);
#pragma unroll
            for (int element = 0; element < V::kPer; ++element) sums[element] += values[element];
            set(vector, sums);
        }
    }

    __device__ void get(int vector, Values& values) const {
        const int first = slice_.first(0, vector);
        if (!kUsed || !slice_.holds(first)) return;
        const float4* quads = quads_at(first);
#pragma unroll
        for (int quad = 0; quad < V::kPer / 4; ++quad) {
            const float4 four = quads[quad * step_];
            memcpy(values + 4 * quad, &four, sizeof(four));
        }
    }

  private:
    __device__ void set(int vector, const Values& values) {
        const int first = slice_.first(0, vector);
        if (!slice_.holds(first)) return;
        float4* quads = quads_at(first);
#pragma unroll
        for (int quad = 0; quad < V::kPer / 4; ++quad) {
            const float* four = values + 4 * quad;
            quads[quad * step_] = make_float4(four[0], four[1], four[2], four[3]);
        }
    }

    // Not kept as a pointer: the compiler would lose sight of its being shared memory.
    __device__ float4* quads_at(int column) const {
        return reinterpret_cast<float4*>(dynamic_shared() + first_byte_) + first_quad<V>(column);
    }

    const typename V::Slice slice_;
    const int step_;
    int first_byte_ = 0;
};

// What both kinds of staged rows share.
template <class V, int kTensors>
class StagedRows {
  public:
    using T = typename V::T;

    __device__ StagedRows(const Geometry& geometry, const void* const (&tensors)[kTensors],
                          const RowWalk<V>& walk, int row_columns)
        : first_(static_cast<const T*>(tensors[0])),
          columns_(geometry.columns),
          ring_(storage(), dynamic_shared(), tensors,
                geometry.columns * static_cast<int>(sizeof(T)),
                row_columns * static_cast<int>(sizeof(T)), geometry.stages,
                {walk.row, walk.step, walk.rows}) {}

    // Only for its alignment.
    __device__ const T* row(int, const RowWalk<V>& walk) const {
        return V::kAligned ? nullptr : first_ + walk.row * columns_;
    }
    __device__ void wait() { ring_.wait(); }
    __device__ void load(int tensor, const RowWalk<V>&, const typename V::Slice& slice, int chunk,
                         uint4 (&packets)[V::kVectors]) const {
        if constexpr (V::kAligned) {
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                const int begin = slice.first(chunk, vector);
                packets[vector] = slice.holds(begin) ? packet(tensor, begin) : uint4{};
            }
        } else {
            slice.load_with(chunk, packets, [&](int begin) { return packet(tensor, begin); });
        }
    }
    __device__ void next() { ring_.next(); }

  private:
    __device__ uint4 packet(int tensor, int begin) const {
        return ring_.packet(tensor, begin * static_cast<int>(sizeof(T)));
    }
    static __device__ RingStorage& storage() {
        __shared__ RingStorage storage;
        return storage;
    }

    const T* first_;
    const int columns_;
    RowRing<kTensors, V::kAligned> ring_;
};

template <class T, int kVectors, int kTensors>
class RowSource<Variant<T, kVectors, Rows::kStaged>, kTensors>
    : public StagedRows<Variant<T, kVectors, Rows::kStaged>, kTensors> {
    using StagedRows<Variant<T, kVectors, Rows::kStaged>, kTensors>::StagedRows;
};

template <class T, int kVectors, int kTensors>
class RowSource<Variant<T, kVectors, Rows::kStagedAny>, kTensors>
    : public StagedRows<Variant<T, kVectors, Rows::kStagedAny>, kTensors> {
    using StagedRows<Variant<T, kVectors, Rows::kStagedAny>, kTensors>::StagedRows;
};

template <class T, int kVectors, int kTensors>
class RowSource<Variant<T, kVectors, Rows::kStagedShare>, kTensors>
    : public StagedRows<Variant<T, kVectors, Rows::kStagedShare>, kTensors> {
    using StagedRows<Variant<T, kVectors, Rows::kStagedShare>, kTensors>::StagedRows;
};

}  // namespace norms
