// Shared by the launchers: error checks and handles.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace roofline {

inline void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(status) + " (" +
                             cudaGetErrorString(status) + ")");
}

inline cudaStream_t as_stream(size_t stream) { return reinterpret_cast<cudaStream_t>(stream); }

template <class T>
T* as_pointer(size_t address) {
    return reinterpret_cast<T*>(address);
}

}  // namespace roofline
