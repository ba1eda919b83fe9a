// Device memory that frees itself: workspaces and plans on the host's side of a bridge.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

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
        // A failure here means that the context is gone, and with it the memory.
        void operator()(void* start) const { static_cast<void>(cudaFree(start)); }
    };

    std::unique_ptr<void, Free> start_;
    std::size_t bytes_ = 0;
};

// Copies a list to the device; the place is const to the kernels that read it.
template <class T>
void upload(const T* to, const std::vector<T>& from) {
    check(cudaMemcpy(const_cast<T*>(to), from.data(), from.size() * sizeof(T),
                     cudaMemcpyHostToDevice),
          "cudaMemcpy to the device");
}

// Zeros, before anybody's stream uses them.
template <class T>
void clear(T* start, std::size_t count) {
    check(cudaMemset(start, 0, count * sizeof(T)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

}  // namespace device
