// Results of Blackwell's decode kernel: whole ones, parts that the last block merges from the
// workspace, and parts that blocks of a cluster merge from each other's shared memory.
#pragma once

#include <cstdint>

#include "Kernels/decode/blackwell/softmax.cuh"
#include "Kernels/decode/blackwell/storage.cuh"
#include "Kernels/decode/merge.cuh"
#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/pair.cuh"

namespace decode::blackwell {

template <class Tr>
class Results {
  public:
    __device__ Results(const Arguments& a, const Work& work, int cluster_blocks,
                       Storage<Tr>& shared)
        : a_(a),
          shared_(shared),
          row_block_(work.row_block),
          first_row_(work.row_block * Tr::kRows),
          rows_(min(Tr::kRows, a.rows - first_row_)),
          thread_(threadIdx.x % kSoftmaxThreads),
          blocks_(cluster_blocks) {}

    __device__ __forceinline__ void store(const Segment& segment, const Softmax<Tr>& softmax) {
        if (segment.slot < 0) {
            store_rows(segment, softmax);
        } else if (blocks_ > 1) {
            send(segment, softmax);
            merge_received(segment);
        } else {
            const Team team = {kSoftmaxWarps};
            store_part(segment, softmax);
            // The whole part is stored before it is announced.
            team.sync();
            if (arrive(a_, segment, row_block_, team)) {
                merge_parts<Tr>(a_, segment, first_row_, team);
            }
        }
    }

    // What all blocks of a cluster send to one of them.
    static constexpr int bytes_received(int blocks) {
        return Tr::kReceivedBytes + blocks * Tr::kRows * static_cast<int>(sizeof(float2));
    }

  private:
    // One element; `row` counts from the block's first.
    __device__ __forceinline__ void store_element(const Segment& segment, int row, int dimension,
                                                  float sum, float total) {
        // A row that sees nothing yields 0.
        const float value = total > 0.0f ? sum * (a_.value_scale / total) : 0.0f;
        const std::int64_t at = tensor_row(a_, segment, first_row_ + row) * Tr::kDim + dimension;
        if constexpr (Tr::kFp8) {
            static_cast<std::uint16_t*>(a_.out)[at] =
                static_cast<std::uint16_t>(pack_pair(value, 0.0f, a_.is_bf16));
        } else {
            static_cast<typename Tr::T*>(a_.out)[at] = device::from_float<typename Tr::T>(value);
        }
    }

    // Calls `body` with every row that exists, the thread's dimension of each part, its sum, and
    // the row's maximum and total.
    template <class Body>
    __device__ __forceinline__ void for_each_row(const Segment& segment, const Softmax<Tr>& softmax,
                                                 Body body) {
        // Unrolled, two parts would take more registers than there are.
#pragma unroll 1
        for (int part = 0; part < Tr::kParts; ++part) {
#pragma unroll
            for (int from = 0; from < Tr::kRows; from += 16) {
                if (from >= rows_) break;
                float sums[16];
                softmax.load_sums(segment, part, from, sums);
#pragma unroll
                for (int row = 0; row < 16; ++row) {
                    if (from + row >= rows_) continue;
                    body(from + row, softmax.dimension(part), sums[row],
                         softmax.maximum(from + row));
                }
            }
        }
    }

    __device__ __forceinline__ void store_rows(const Segment& segment, const Softmax<Tr>& softmax) {
        for_each_row(segment, softmax, [&](int row, int dimension, float sum, float2 maximum) {
            if (!softmax.has_dimension()) return;
            store_element(segment, row, dimension, sum, maximum.y);
        });
    }

    __device__ __forceinline__ void store_part(const Segment& segment, const Softmax<Tr>& softmax) {
        const std::int64_t first = part_row<Tr>(a_, segment.slot, first_row_);
        for_each_row(segment, softmax, [&](int row, int dimension, float sum, float2 maximum) {
            if (thread_ == row) a_.workspace.maxima[first + row] = maximum;
            if (!softmax.has_dimension()) return;
            a_.workspace.partials[(first + row) * Tr::kDim + dimension] = sum;
        });
    }

    // Block r of a cluster merges dimensions from r * slice() on.
    __device__ int slice() const { return Tr::kDim / blocks_; }

    __device__ __forceinline__ void send(const Segment& segment, const Softmax<Tr>& softmax) {
        const int rank = ptx::cluster_rank();
#pragma unroll 1
        for (int part = 0; part < Tr::kParts; ++part) {
            const int dimension = softmax.dimension(part);
            const int owner = dimension / slice();
            const int place = (rank * slice() + dimension % slice()) * Tr::kRows;
            const std::uint32_t to = ptx::peer_address(shared_.received + place, owner);
            const std::uint32_t full = ptx::peer_address(&shared_.received_full, owner);
#pragma unroll
            for (int from = 0; from < Tr::kRows; from += 16) {
                float sums[16];
                softmax.load_sums(segment, part, from, sums);
                if (!softmax.has_dimension()) continue;
#pragma unroll
                for (int row = 0; row < 16; row += 4) {
                    ptx::send_to_peer(to + (from + row) * 4, sums + row, full);
                }
            }
        }
        // Each of as many threads as there are blocks tells one of them the maxima.
        if (thread_ >= blocks_) return;
        const std::uint32_t maxima = ptx::peer_address(shared_.received_maxima[rank], thread_);
        const std::uint32_t their_full = ptx::peer_address(&shared_.received_full, thread_);
#pragma unroll
        for (int row = 0; row < Tr::kRows; row += 2) {
            const float2 first = softmax.maximum(row), second = softmax.maximum(row + 1);
            const float four[4] = {first.x, first.y, second.x, second.y};
            ptx::send_to_peer(maxima + row * 8, four, their_full);
        }
    }

    __device__ __forceinline__ void merge_received(const Segment& segment) {
        while (!ptx::mbarrier_try_wait_cluster(&shared_.received_full, 0)) {
        }
        const int rank = ptx::cluster_rank();
        const int dimension = thread_ % slice();
        for (int row = thread_ / slice(); row < rows_; row += kSoftmaxThreads / slice()) {
            float top = -INFINITY, total = 0.0f, sum = 0.0f;
            for (int part = 0; part < blocks_; ++part) {
                top = fmaxf(top, shared_.received_maxima[part][row].x);
            }
            for (int part = 0; part < blocks_; ++part) {
                const float2 maximum = shared_.received_maxima[part][row];
                const float factor = device::shrink(maximum.x, top);
                total += factor * maximum.y;
                sum += factor * shared_.received[(part * slice() + dimension) * Tr::kRows + row];
            }
            store_element(segment, row, rank * slice() + dimension, sum, total);
        }
    }

    const Arguments& a_;
    Storage<Tr>& shared_;
    const int row_block_;
    const int first_row_;
    const int rows_;
    const int thread_;
    const int blocks_;
};

}  // namespace decode::blackwell
