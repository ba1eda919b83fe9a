// Makes plans that kernels read: cut on the host, written to page-locked memory, and copied to the
// device in one piece.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "Kernels/bridge/facts.h"
#include "Kernels/bridge/plan.h"
#include "Kernels/device/memory.h"
#include "Kernels/device/paged/carver.h"

namespace device {

// What a plan takes on its way to the device: page-locked memory, and a stream that waits for no
// other. One per thread, kept for its next plan.
class Staging {
  public:
    static Staging& of_thread() {
        thread_local Staging staging;
        return staging;
    }

    void* memory(std::size_t bytes) {
        if (bytes_ < bytes) {
            void* start = nullptr;
            check(cudaMallocHost(&start, bytes), "cudaMallocHost of a plan's staging memory");
            memory_.reset(start);
            bytes_ = bytes;
        }
        return memory_.get();
    }
    cudaStream_t stream() const { return stream_.get(); }

  private:
    Staging() {
        cudaStream_t stream = nullptr;
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
              "cudaStreamCreateWithFlags");
        stream_.reset(stream);
    }

    // At the thread's end a failure means that the context is gone, and these with it.
    struct Free {
        void operator()(void* start) const { static_cast<void>(cudaFreeHost(start)); }
        void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
    };

    std::unique_ptr<void, Free> memory_;
    std::size_t bytes_ = 0;
    std::unique_ptr<CUstream_st, Free> stream_;
};

// Writes a list to its section of a staged workspace; const to the kernels that read it.
template <class T>
void store(const T* section, const std::vector<T>& list) {
    std::copy(list.begin(), list.end(), const_cast<T*>(section));
}

// Its clock runs from construction until the copy is enqueued, but not while memory is allocated
// and its counters zeroed, which kernels leave at zero: a server allocates once and plans every
// step.
class Planner {
  public:
    // `carve(carver)` returns the sections of a workspace, and `fill(workspace)` writes those that
    // the kernels read, for which `carve` took memory before `carver.end_tables()`.
    template <class Carve, class Fill>
    auto stage(const Carve& carve, const Fill& fill) {
        stop();
        Carver sizes;
        carve(sizes);
        memory_ = std::make_shared<Memory>(sizes.bytes());
        Staging& staging = Staging::of_thread();
        void* const staged = staging.memory(sizes.tables());
        Carver parts(memory_->start());
        const auto workspace = carve(parts);
        if (sizes.counters() > sizes.tables()) {
            check(cudaMemsetAsync(static_cast<char*>(memory_->start()) + sizes.tables(), 0,
                                  sizes.counters() - sizes.tables(), staging.stream()),
                  "zeroing of a plan's counters");
        }
        start();
        if (sizes.tables() > 0) {
            Carver host(staged);
            fill(carve(host));
            check(cudaMemcpyAsync(memory_->start(), staged, sizes.tables(), cudaMemcpyHostToDevice,
                                  staging.stream()),
                  "copy of a plan");
        }
        stop();
        check(cudaStreamSynchronize(staging.stream()), "copy of a plan");
        return workspace;
    }

    // The plan keeps the workspace.
    template <class Launch>
    std::unique_ptr<Plan> finish(Launch launch, Facts facts) const {
        facts.add("workspace_bytes", memory_->bytes()).add("plan_us", microseconds());
        return std::make_unique<Plan>(
            [launch, keep = memory_](cudaStream_t stream) { launch(stream); }, facts.json());
    }

  private:
    using Clock = std::chrono::steady_clock;

    void start() { started_ = Clock::now(); }
    void stop() { spent_ += Clock::now() - started_; }
    double microseconds() const {
        return std::chrono::duration<double, std::micro>(spent_).count();
    }

    Clock::time_point started_ = Clock::now();
    Clock::duration spent_{};
    std::shared_ptr<Memory> memory_;
};

}  // namespace device
