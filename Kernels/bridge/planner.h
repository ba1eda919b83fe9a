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

// Page-locked memory of the thread, for a plan on its way to the device.
inline void* staging(std::size_t bytes) {
    struct Unlock {
        void operator()(void* start) const { static_cast<void>(cudaFreeHost(start)); }
    };
    thread_local std::unique_ptr<void, Unlock> memory;
    thread_local std::size_t size = 0;
    if (size < bytes) {
        void* start = nullptr;
        check(cudaMallocHost(&start, bytes), "cudaMallocHost of a plan's staging memory");
        memory.reset(start);
        size = bytes;
    }
    return memory.get();
}

// Writes a list to its section of a staged workspace; const to the kernels that read it.
template <class T>
void store(const T* section, const std::vector<T>& list) {
    std::copy(list.begin(), list.end(), const_cast<T*>(section));
}

// Its clock runs from construction until the copy is enqueued, but not while memory is allocated: a
// server allocates once and plans every step.
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
        void* const staged = staging(sizes.tables());
        Carver parts(memory_->start());
        const auto workspace = carve(parts);
        start();
        Carver host(staged);
        fill(carve(host));
        check(cudaMemcpyAsync(memory_->start(), staged, sizes.tables(), cudaMemcpyHostToDevice,
                              /*stream=*/nullptr),
              "copy of a plan");
        stop();
        check(cudaStreamSynchronize(nullptr), "copy of a plan");
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
