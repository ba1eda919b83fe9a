// Shared by the launchers: grid sizes, error checks, dispatch on the element type.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "Kernels/benchmarks/harness/device/cuda/values.cuh"

namespace harness_device {

constexpr int kThreads = 256;

// Blocks of a grid-stride loop: several per multiprocessor on any card, but a fixed number, so that
// the partial results of a reduction have a fixed order.
constexpr unsigned kBlocks = 1024;

// Throws, which cxx turns into an Err on the Rust side.
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

// Position and step of this thread in a grid-stride loop, in 64 bits: tensors pass 2^31 elements.
__device__ __forceinline__ uint64_t grid_thread() {
    return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ uint64_t grid_threads() {
    return static_cast<uint64_t>(gridDim.x) * blockDim.x;
}

// The unit of a load or store.
constexpr uint64_t kPackBytes = 16;

template <class T>
struct alignas(kPackBytes) Pack {
    static constexpr int kSize = kPackBytes / sizeof(T);
    T values[kSize];
};

// The number of whole packs at `address`; none if it is not aligned, which leaves single elements.
template <class T>
uint64_t packs(size_t address, uint64_t elements) {
    return address % kPackBytes == 0 ? elements / Pack<T>::kSize : 0;
}

// Calls `body` with the element type as a compile-time constant, which is a float.
template <class Body>
void dispatch_float(uint32_t dtype, Body body) {
    switch (static_cast<DType>(dtype)) {
        case DType::kF32:
            return body(Element<DType::kF32>());
        case DType::kF16:
            return body(Element<DType::kF16>());
        case DType::kBf16:
            return body(Element<DType::kBf16>());
        case DType::kF8E4M3:
            return body(Element<DType::kF8E4M3>());
        case DType::kF8E8M0:
            return body(Element<DType::kF8E8M0>());
        default:
            throw std::runtime_error("no float has the type code " + std::to_string(dtype));
    }
}

// The same with any element type.
template <class Body>
void dispatch(uint32_t dtype, Body body) {
    switch (static_cast<DType>(dtype)) {
        case DType::kI32:
            return body(Element<DType::kI32>());
        case DType::kI64:
            return body(Element<DType::kI64>());
        case DType::kByte:
            return body(Element<DType::kByte>());
        default:
            return dispatch_float(dtype, body);
    }
}

}  // namespace harness_device
