// Stands in for torch's header: failures become exceptions, which the bridge passes to Rust.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#define C10_CUDA_CHECK(call)                                             \
    do {                                                                 \
        const cudaError_t status_ = (call);                              \
        if (status_ != cudaSuccess) {                                    \
            throw std::runtime_error(std::string("FlashAttention-2: ") + \
                                     cudaGetErrorName(status_) + ", " +  \
                                     cudaGetErrorString(status_));       \
        }                                                                \
    } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
