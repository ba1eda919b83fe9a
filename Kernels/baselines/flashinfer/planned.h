// A planned attention call: everything is decided and staged, ready to be enqueued any number of
// times.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>

namespace fi {

class Planned {
  public:
    Planned() = default;
    virtual ~Planned() = default;
    Planned(const Planned&) = delete;
    Planned& operator=(const Planned&) = delete;

    // Does not allocate or synchronise.
    virtual void enqueue(cudaStream_t stream) = 0;

    // Host time of the library's planner, up to enqueuing the copy of its result.
    double microseconds = 0;
    // Which kernel and tile the planner chose.
    std::string kernel;
};

// Device memory, freed on destruction.
class DeviceMemory {
  public:
    explicit DeviceMemory(std::size_t bytes);
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    void* address() const { return address_; }
    std::size_t bytes() const { return bytes_; }

  private:
    void* address_ = nullptr;
    std::size_t bytes_;
};

// Shared by all live plans: device scratch for partial results, which lasts for one call only;
// page-locked memory that a planner writes to; and a stream to copy from it. Calls that share it
// must be on one stream.
class Scratch {
  public:
    static std::shared_ptr<Scratch> shared();
    Scratch();
    ~Scratch();

    DeviceMemory partials;
    void* pinned = nullptr;
    std::size_t pinned_bytes;
    cudaStream_t stream = nullptr;
};

// The workspaces that the library's planners take.
class PlanMemory {
  public:
    PlanMemory();

    // Runs `plan`, records its time, and waits for the copy of its result to the device.
    template <class Plan>
    void run(Planned& planned, Plan plan);

    std::shared_ptr<Scratch> scratch;
    // The schedule, which lasts as long as the plan.
    DeviceMemory schedule;

  private:
    void finish(Planned& planned, cudaError_t status, double microseconds);
    static double now();
};

template <class Plan>
void PlanMemory::run(Planned& planned, Plan plan) {
    const double start = now();
    const cudaError_t status = plan();
    finish(planned, status, now() - start);
}

}  // namespace fi
