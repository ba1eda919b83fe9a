// RAII device memory: workspaces and plans on the host side of a bridge.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>

#include "Kernels/device/launch.h"

namespace device {

class Memory {
  public:
    Memory() = default;
    explicit Memory(std::size_t bytes) : bytes_(bytes) {
        void* start = nullptr;
        check(cudaMalloc(&start, bytes),
              ("cudaMalloc of " + std::to_string(bytes) + " bytes").c_str());
        start_.reset(start);
    }

    void* start() const { return start_.get(); }
    std::size_t address() const { return reinterpret_cast<std::size_t>(start()); }
    std::size_t bytes() const { return bytes_; }

  private:
    struct Free {
        // A failure here means that the context is gone, and the memory with it.
        void operator()(void* start) const { static_cast<void>(cudaFree(start)); }
    };

    std::unique_ptr<void, Free> start_;
    std::size_t bytes_ = 0;
};

}  // namespace device
