// Rows that come through a ring in shared memory (Rows::kStaged), and the weight beside them.
#pragma once

#include "Kernels/device/row_ring.cuh"
#include "Kernels/norms/rows.cuh"

namespace norms {

// Where a kernel reads the weight: if rows are staged, a copy in shared memory behind the ring,
// because the ring leaves little L1. The caller's next barrier completes it.
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

// Sums over rows of a thread's own columns, in shared memory behind the weight; no other thread
// touches them. Without kUsed it is nothing.
template <class V, bool kUsed>
class SharedSums {
  public:
    using Values = typename V::Slice::Values;

    __device__ SharedSums(const device::RowTeam& team, const Geometry& geometry)
        : slice_(team, nullptr, geometry.columns, true) {
        if constexpr (kUsed) {
            constexpr int kTensors = 2;
            const int row_bytes = geometry.columns * static_cast<int>(sizeof(typename V::T));
            unsigned char* kept = dynamic_shared() + geometry.stages * kTensors * row_bytes;
            sums_ = reinterpret_cast<float*>(kept) + geometry.columns;
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
        const float4* quads = reinterpret_cast<const float4*>(sums_ + first);
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
        float4* quads = reinterpret_cast<float4*>(sums_ + first);
#pragma unroll
        for (int quad = 0; quad < V::kPer / 4; ++quad) {
            const float* four = values + 4 * quad;
            quads[quad] = make_float4(four[0], four[1], four[2], four[3]);
        }
    }

    const typename V::Slice slice_;
    float* sums_ = nullptr;
};

template <class Element, int kVectors, int kTensors>
class RowSource<Variant<Element, kVectors, Rows::kStaged>, kTensors> {
  public:
    using V = Variant<Element, kVectors, Rows::kStaged>;
    using T = Element;
    using Slice = device::RowSlice<T, kVectors, true>;

    __device__ RowSource(const Geometry& geometry, const void* const (&tensors)[kTensors],
                         const RowWalk<V>& walk)
        : ring_(storage(), dynamic_shared(), tensors,
                static_cast<uint32_t>(geometry.columns) * sizeof(T), geometry.stages,
                {walk.row, walk.step, walk.rows}) {}

    __device__ const T* row(int, const RowWalk<V>&) const { return nullptr; }
    __device__ void wait() { ring_.wait(); }
    __device__ void load(int tensor, const RowWalk<V>&, const Slice& slice, int chunk,
                         typename Slice::Packets& packets, float outside = 0.0f) const {
        slice.load_with(chunk, packets, outside, [&](int, int begin) {
            return *reinterpret_cast<const uint4*>(ring_.template row<T>(tensor) + begin);
        });
    }
    __device__ float element(int tensor, const RowWalk<V>&, int column) const {
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

}  // namespace norms
