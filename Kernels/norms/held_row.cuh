// A long row in the shared memory of a cluster (Rows::kHeld): read once from memory, in pieces that
// arrive while earlier ones are worked on, and from there as often as needed.
#pragma once

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/norms/rows.cuh"

namespace norms {

// Every chunk has a barrier. Its packets lie in the order of vectors, then of threads: those of a
// vector are contiguous in memory too, one copy.
template <class Element, int kVectors>
class RowSource<Variant<Element, kVectors, Rows::kHeld>, 1> {
  public:
    using V = Variant<Element, kVectors, Rows::kHeld>;
    using T = Element;
    using Slice = typename V::Slice;

    __device__ RowSource(const Geometry& geometry, const void* const (&tensors)[1],
                         const RowWalk<V>& walk)
        : row_(static_cast<const T*>(tensors[0]) + walk.row * geometry.columns) {
        const int chunk = threadIdx.x;
        if (chunk < geometry.chunks) {
            device::ptx::mbarrier_init(arrived(chunk), 1);
            device::ptx::fence_mbarrier_init();
            fetch(geometry, chunk);
        }
        // The initialised barriers are visible before anyone waits on them.
        __syncthreads();
    }

    __device__ const T* row(int, const RowWalk<V>&) const { return row_; }
    __device__ void wait() {}
    __device__ void load(int, const RowWalk<V>&, const Slice& slice, int chunk,
                         typename Slice::Packets& packets, float outside = 0.0f) const {
        device::ptx::mbarrier_wait(arrived(chunk), 0);
        slice.load_with(chunk, packets, outside,
                        [&](int vector, int) { return place(chunk, vector)[threadIdx.x]; });
    }
    __device__ void take(const Slice&, typename Slice::Packets&) const {}
    __device__ float element(int, const RowWalk<V>&, int column) const {
        return device::to_float(row_[column]);
    }
    __device__ void next() {}

  private:
    static __device__ std::uint64_t* arrived(int chunk) {
        __shared__ std::uint64_t barriers[kMostHeldChunks];
        return barriers + chunk;
    }
    static __device__ uint4* place(int chunk, int vector) {
        return reinterpret_cast<uint4*>(dynamic_shared()) +
               (chunk * kVectors + vector) * static_cast<int>(blockDim.x);
    }

    __device__ void fetch(const Geometry& geometry, int chunk) const {
        const int width = static_cast<int>(blockDim.x) * V::kPer;
        const int rank = geometry.cluster_blocks > 1 ? device::ptx::cluster_rank() : 0;
        const auto begin = [&](int vector) {
            return ((chunk * kVectors + vector) * geometry.cluster_blocks + rank) * width;
        };
        const auto bytes = [&](int vector) {
            const int left = max(0, min(geometry.columns - begin(vector), width));
            return static_cast<std::uint32_t>(left * sizeof(T));
        };
        std::uint32_t expected = 0;
        for (int vector = 0; vector < kVectors; ++vector) expected += bytes(vector);
        device::ptx::mbarrier_expect_bytes(arrived(chunk), expected);
        for (int vector = 0; vector < kVectors; ++vector) {
            if (bytes(vector) == 0) break;
            device::ptx::bulk_load(place(chunk, vector), row_ + begin(vector), bytes(vector),
                                   arrived(chunk));
        }
    }

    const T* row_;
};

}  // namespace norms
