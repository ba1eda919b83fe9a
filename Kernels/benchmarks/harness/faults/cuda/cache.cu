// Work that asks the L2 to keep its inputs; see faults.h.

#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "Kernels/benchmarks/harness/faults/cuda/faults.h"
#include "Kernels/device/ptx/memory.cuh"

namespace ptx = device::ptx;

namespace harness_faults {
namespace {

void check(cudaError_t status, const char* call) {
    if (status != cudaSuccess) {
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
    }
}

int attribute(cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
    return value;
}

template <bool kPin>
__device__ float4 load(const float* address) {
    uint4 bits =
        kPin ? ptx::load_16_by_policy(address, ptx::evict_last_policy()) : ptx::load_16(address);
    return make_float4(__uint_as_float(bits.x), __uint_as_float(bits.y), __uint_as_float(bits.z),
                       __uint_as_float(bits.w));
}

template <bool kPin>
__global__ void scale_vectors(const float* x, const float* w, float* y, std::size_t elements,
                              std::size_t columns) {
    const std::size_t i = 4 * (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x);
    if (i < elements) {
        const float4 left = load<kPin>(x + i), right = load<kPin>(w + i % columns);
        *reinterpret_cast<float4*>(y + i) =
            make_float4(left.x * right.x, left.y * right.y, left.z * right.z, left.w * right.w);
    }
}

}  // namespace

void reserve_cache() {
    check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize,
                             attribute(cudaDevAttrMaxPersistingL2CacheSize)),
          "cudaDeviceSetLimit");
}

void pinned(std::size_t x, std::size_t w, std::size_t y, std::size_t rows, std::size_t columns,
            bool pin, std::size_t stream) {
    if (columns % 4 != 0) {
        throw std::runtime_error("columns is " + std::to_string(columns) +
                                 "; multiples of 4 are supported");
    }
    constexpr unsigned kThreads = 256;
    const std::size_t elements = rows * columns;
    cudaLaunchAttribute window = {};
    window.id = cudaLaunchAttributeAccessPolicyWindow;
    window.val.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(x);
    window.val.accessPolicyWindow.num_bytes = std::min<std::size_t>(
        elements * sizeof(float), attribute(cudaDevAttrMaxAccessPolicyWindowSize));
    window.val.accessPolicyWindow.hitRatio = 1.0f;
    window.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((elements / 4 + kThreads - 1) / kThreads));
    config.blockDim = dim3(kThreads);
    config.stream = reinterpret_cast<cudaStream_t>(stream);
    config.attrs = &window;
    config.numAttrs = pin ? 1 : 0;
    auto kernel = pin ? scale_vectors<true> : scale_vectors<false>;
    check(cudaLaunchKernelEx(&config, kernel, reinterpret_cast<const float*>(x),
                             reinterpret_cast<const float*>(w), reinterpret_cast<float*>(y),
                             elements, columns),
          "scale_vectors");
}

}  // namespace harness_faults
