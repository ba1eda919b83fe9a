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

// Where a kernel reads the weight: if rows are staged, a copy in shared memory behind the ring,
// because the ring leaves little L1. The caller's next barrier completes it.
template <class V, int kTensors>
__device__ const void* columns_for(const void* vector_of_columns, bool wide,
                                   const Geometry& geometry) {
    if constexpr (!V::kStaged) {
        return vector_of_columns;
    } else {
        using T = typename V::T;
        const int each = static_cast<int>(wide ? sizeof(float) : sizeof(T));
        const int packets = geometry.columns * each / kPacketBytes;
        unsigned char* copy = dynamic_shared() + ring_bytes<V, kTensors>(geometry);
        const uint4* from = static_cast<const uint4*>(vector_of_columns);
        for (int i = threadIdx.x; i < packets; i += blockDim.x) {
            reinterpret_cast<uint4*>(copy)[i] = from[i];
        }
        if constexpr (!V::kAligned) {
            // The rest, and zeros for what the last thread's columns have beyond it.
            const auto* halves = static_cast<const uint16_t*>(vector_of_columns);
            const int held = geometry.columns * each / 2;
            const int first = packets * kPacketBytes / 2;
            for (int i = first + threadIdx.x; i < kept_columns<V>(geometry) * each / 2;
                 i += blockDim.x) {
                reinterpret_cast<uint16_t*>(copy)[i] = i < held ? halves[i] : uint16_t{0};
            }
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

// Sums over rows of a thread's own columns, in shared memory behind the weight; no other thread
// touches them. Without kUsed it is nothing.
template <class V, bool kUsed>
class SharedSums {
  public:
    using Values = typename V::Slice::Values;

    __device__ SharedSums(const device::RowTeam& team, const Geometry& geometry)
        : slice_(team, nullptr, geometry.columns, true) {
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
            const float4 four = quads[quad];
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
            quads[quad] = make_float4(four[0], four[1], four[2], four[3]);
        }
    }

    // Not kept as a pointer: the compiler would lose sight of its being shared memory.
    __device__ float4* quads_at(int column) const {
        return reinterpret_cast<float4*>(dynamic_shared() + first_byte_ +
                                         column * static_cast<int>(sizeof(float)));
    }

    const typename V::Slice slice_;
    int first_byte_ = 0;
};

// What both kinds of staged rows share.
template <class V, int kTensors>
class StagedRows {
  public:
    using T = typename V::T;

    __device__ StagedRows(const Geometry& geometry, const void* const (&tensors)[kTensors],
                          const RowWalk<V>& walk)
        : first_(static_cast<const T*>(tensors[0])),
          columns_(geometry.columns),
          ring_(storage(), dynamic_shared(), tensors,
                geometry.columns * static_cast<int>(sizeof(T)), geometry.stages,
                {walk.row, walk.step, walk.rows}) {}

    // Only for its alignment.
    __device__ const T* row(int, const RowWalk<V>& walk) const {
        return V::kAligned ? nullptr : first_ + walk.row * columns_;
    }
    __device__ void wait() { ring_.wait(); }
    __device__ void load(int tensor, const RowWalk<V>&, const typename V::Slice& slice, int chunk,
                         uint4 (&packets)[V::kVectors]) const {
        if constexpr (V::kAligned) {
            slice.load_with(chunk, packets, 0.0f,
                            [&](int, int begin) { return packet(tensor, begin); });
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

}  // namespace norms
