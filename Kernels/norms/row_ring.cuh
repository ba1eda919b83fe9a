// A ring of rows in shared memory: bulk copies fetch a block's next rows while it works on the
// current one, so that memory never waits for arithmetic or barriers.
//
// For blocks that work on one row at a time, alone (no cluster). A row is one contiguous copy per
// tensor. Stage s holds row s, s + kStages, ... of the block: bytes [(s * kTensors + t) *
// slot_bytes, ...) of dynamic shared memory: tensor t.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/tma.cuh"
#include "Kernels/norms/config.h"

namespace norms {

struct RingStorage {
    uint64_t filled[kMostStages];
};

// All threads of the block construct one, synchronise before anyone waits for a row, and walk the
// rows first, first + step, ... below rows.
//
// kWhole: rows are whole packets. Otherwise a slot begins with the packet in which its row begins,
// and what else is in the row's first and last packet is anything.
template <int kTensors, bool kWhole>
class RowRing {
  public:
    struct Walk {
        std::int64_t first;
        std::int64_t step;
        std::int64_t rows;
    };

    __device__ RowRing(RingStorage& storage, unsigned char* bytes,
                       const void* const (&tensors)[kTensors], int row_bytes, int row_step,
                       int stages, Walk walk)
        : storage_(storage),
          bytes_(bytes),
          row_bytes_(row_bytes),
          row_step_(row_step),
          stages_(stages),
          step_(walk.step),
          next_(walk.first),
          rows_(walk.rows) {
#pragma unroll
        for (int tensor = 0; tensor < kTensors; ++tensor) {
            tensors_[tensor] = static_cast<const unsigned char*>(tensors[tensor]);
        }
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < stages_; ++stage) {
                device::ptx::mbarrier_init(&storage_.filled[stage], 1);
            }
            device::ptx::fence_mbarrier_init();
            for (int stage = 0; stage < stages_; ++stage) fetch(stage);
        }
    }

    // Returns once the current row has arrived.
    __device__ void wait() { device::ptx::mbarrier_wait(&storage_.filled[stage_], parity_); }

    // A packet of the current row's slot.
    __device__ uint4 packet(int tensor, int first_byte) const {
        return *reinterpret_cast<const uint4*>(slot(stage_, tensor) + first_byte);
    }

    // Advances to the next row. The caller ensures that all threads have read what they need of the
    // current one: its stage is refilled at once.
    __device__ void next() {
        // A block of one warp has met no barrier since.
        if constexpr (!kWhole) __syncwarp();
        if (threadIdx.x == 0) fetch(stage_);
        if (++stage_ == stages_) {
            stage_ = 0;
            parity_ ^= 1;
        }
    }

  private:
    __device__ unsigned char* slot(int stage, int tensor) const {
        const int slot_bytes = kWhole ? row_bytes_ : norms::slot_bytes(row_bytes_);
        return bytes_ + (stage * kTensors + tensor) * slot_bytes;
    }

    __device__ void fetch(int stage) {
        if (next_ >= rows_) return;
        uint64_t* barrier = &storage_.filled[stage];
        std::int64_t begin = next_ * row_step_;
        uint32_t bytes = static_cast<uint32_t>(row_bytes_);
        if constexpr (!kWhole) {
            const std::int64_t end = begin + row_bytes_;
            begin -= begin % kPacketBytes;
            // After the last row there may be no memory.
            const bool last = next_ == rows_ - 1;
            const std::int64_t whole = (last ? end : end + kPacketBytes - 1) / kPacketBytes;
            bytes = static_cast<uint32_t>(whole * kPacketBytes - begin);
            if (last) copy_rest(stage, begin, bytes, static_cast<uint32_t>(end - begin));
        }
        device::ptx::mbarrier_expect_bytes(barrier, kTensors * bytes);
#pragma unroll
        for (int tensor = 0; tensor < kTensors; ++tensor) {
            device::ptx::bulk_load(slot(stage, tensor), tensors_[tensor] + begin, bytes, barrier);
        }
        next_ += step_;
    }

    // By this thread, two bytes at a time; its arrival on the barrier publishes them.
    __device__ void copy_rest(int stage, std::int64_t begin, uint32_t from, uint32_t to) {
        for (int tensor = 0; tensor < kTensors; ++tensor) {
            const unsigned char* row = tensors_[tensor] + begin;
            unsigned char* copy = slot(stage, tensor);
            for (uint32_t at = from; at < to; at += 2) {
                *reinterpret_cast<uint16_t*>(copy + at) =
                    *reinterpret_cast<const uint16_t*>(row + at);
            }
        }
    }

    RingStorage& storage_;
    unsigned char* const bytes_;
    const unsigned char* tensors_[kTensors];
    const int row_bytes_;
    const int row_step_;
    const int stages_;
    const std::int64_t step_;
    // The next row to fetch; counted only by thread 0.
    std::int64_t next_;
    const std::int64_t rows_;
    int stage_ = 0;
    uint32_t parity_ = 0;
};

}  // namespace norms
