// A ring of rows in shared memory: bulk copies fetch a block's next rows while it works on the
// current one, so that memory never waits for arithmetic or barriers.
//
// For blocks that work on one row at a time, alone (no cluster). A row is one contiguous copy per
// tensor, so rows must be aligned to 16 bytes. Stage s holds row s, s + kStages, ... of the block:
// bytes [(s * kTensors + t) * row_bytes, ...) of dynamic shared memory: tensor t.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/tma.cuh"

namespace device {

constexpr int kMaxStages = 8;

struct RingStorage {
    uint64_t filled[kMaxStages];
};

// All threads of the block construct one and walk the rows first, first + step, ... below rows.
template <int kTensors>
class RowRing {
  public:
    struct Walk {
        std::int64_t first;
        std::int64_t step;
        std::int64_t rows;
    };

    __device__ RowRing(RingStorage& storage, unsigned char* bytes,
                       const void* const (&tensors)[kTensors], uint32_t row_bytes, int stages,
                       Walk walk)
        : storage_(storage),
          bytes_(bytes),
          row_bytes_(row_bytes),
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
                ptx::mbarrier_init(&storage_.filled[stage], 1);
            }
            ptx::fence_mbarrier_init();
            for (int stage = 0; stage < stages_; ++stage) fetch(stage);
        }
        // The initialised barriers are visible before anyone waits on them.
        __syncthreads();
    }

    // Returns once the current row has arrived.
    __device__ void wait() { ptx::mbarrier_wait(&storage_.filled[stage_], parity_); }

    // The current row.
    template <class T>
    __device__ const T* row(int tensor) const {
        return reinterpret_cast<const T*>(bytes_ + (stage_ * kTensors + tensor) * row_bytes_);
    }

    // Advances to the next row. The caller ensures that all threads have read what they need of the
    // current one: its stage is refilled at once.
    __device__ void next() {
        if (threadIdx.x == 0) fetch(stage_);
        if (++stage_ == stages_) {
            stage_ = 0;
            parity_ ^= 1;
        }
    }

  private:
    __device__ void fetch(int stage) {
        if (next_ >= rows_) return;
        uint64_t* barrier = &storage_.filled[stage];
        ptx::mbarrier_expect_bytes(barrier, kTensors * row_bytes_);
#pragma unroll
        for (int tensor = 0; tensor < kTensors; ++tensor) {
            ptx::bulk_load(bytes_ + (stage * kTensors + tensor) * row_bytes_,
                           tensors_[tensor] + next_ * row_bytes_, row_bytes_, barrier);
        }
        next_ += step_;
    }

    RingStorage& storage_;
    unsigned char* const bytes_;
    const unsigned char* tensors_[kTensors];
    const uint32_t row_bytes_;
    const int stages_;
    const std::int64_t step_;
    // The next row to fetch; counted only by thread 0.
    std::int64_t next_;
    const std::int64_t rows_;
    int stage_ = 0;
    uint32_t parity_ = 0;
};

}  // namespace device
