// A row that stays in shared memory (Rows::kParked), for kernels that need the registers elsewhere.
#pragma once

#include "Kernels/device/ptx/cp_async.cuh"
#include "Kernels/norms/rows.cuh"

namespace norms {

// Every thread copies its own packets to shared memory: no barrier and no registers needed.
template <class Element, int kVectors>
class RowSource<Variant<Element, kVectors, Rows::kParked>, 1> {
  public:
    using V = Variant<Element, kVectors, Rows::kParked>;
    using T = Element;
    using Slice = typename V::Slice;

    __device__ RowSource(const Geometry& geometry, const void* const (&tensors)[1],
                         const RowWalk<V>& walk)
        : row_(static_cast<const T*>(tensors[0]) + walk.row * geometry.columns) {}

    __device__ const T* row(int, const RowWalk<V>&) const { return row_; }
    __device__ void wait() {}
    __device__ void load(int, const RowWalk<V>&, const Slice& slice, int,
                         typename Slice::Packets&) const {
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) {
            const int begin = slice.first(0, vector);
            device::ptx::copy_async_16_or_zero(device::ptx::shared_address(place(vector)),
                                               row_ + begin, slice.holds(begin));
        }
        device::ptx::commit_copies();
    }
    __device__ void take(const Slice&, typename Slice::Packets& packets) const {
        device::ptx::wait_for_copies<0>();
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) packets[vector] = *place(vector);
    }
    __device__ void next() {}

  private:
    static __device__ uint4* place(int vector) {
        return reinterpret_cast<uint4*>(dynamic_shared()) + vector * blockDim.x + threadIdx.x;
    }

    const T* row_;
};

}  // namespace norms
