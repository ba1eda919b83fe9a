// Host-side launch with cluster and dependency attributes; every failure becomes an exception.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/device/integers.h"
#include "Kernels/device/machine.h"
#include "Kernels/device/require.h"

namespace device {

inline void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(status) + ", " +
                             cudaGetErrorString(status));
}

struct Launch {
    dim3 grid;
    dim3 block;
    int cluster_blocks = 1;
    // Dynamic shared memory; above 40 KiB the kernel's limit is raised.
    std::size_t shared_bytes = 0;
    // The kernel may start while the stream's previous one drains; it must then wait for it itself.
    bool overlaps_previous = false;
};

inline Launch blocks_of(std::int64_t blocks, dim3 threads) {
    if (blocks > std::numeric_limits<int>::max()) {
        refuse(std::to_string(blocks) + " blocks are too many for one launch");
    }
    return {dim3(static_cast<unsigned>(blocks)), threads};
}

// Enough blocks of `threads` for this many items, `each` per thread.
inline Launch cover(std::int64_t items, int threads, int each = 1) {
    return blocks_of(divide_up(items, std::int64_t{threads} * each), dim3(threads));
}

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), const Launch& shape,
            cudaStream_t stream, const Arguments&... arguments) {
    cudaLaunchAttribute attributes[2];
    unsigned count = 0;
    if (shape.cluster_blocks > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count].val.clusterDim.x = static_cast<unsigned>(shape.cluster_blocks);
        attributes[count].val.clusterDim.y = 1;
        attributes[count].val.clusterDim.z = 1;
        ++count;
    }
    if (shape.cluster_blocks > kPortableClusterBlocks) {
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
              name);
    }
    if (shape.overlaps_previous) {
        attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[count].val.programmaticStreamSerializationAllowed = 1;
        ++count;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    // A block gets 48 KiB by default, less its kernel's static shared memory.
    constexpr std::size_t kUsualSharedBytes = 40 << 10;
    if (shape.shared_bytes > kUsualSharedBytes) {
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shape.shared_bytes)),
              name);
    }
    check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), name);
}

// Work that is checked and chosen: it only needs a stream, and may be enqueued any number of times.
using Enqueue = std::function<void(cudaStream_t)>;

// launch(), once there is a stream.
template <class... Parameters, class... Arguments>
Enqueue prepare(const char* name, void (*kernel)(Parameters...), const Launch& shape,
                const Arguments&... arguments) {
    return [=](cudaStream_t stream) { launch(name, kernel, shape, stream, arguments...); };
}

constexpr int kMaxDevices = 64;

// SMs of the current device; queried once per device.
inline int multiprocessors() {
    static int counts[kMaxDevices] = {};
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    if (device >= kMaxDevices) throw std::runtime_error("device number above 63");
    if (counts[device] == 0) {
        check(cudaDeviceGetAttribute(&counts[device], cudaDevAttrMultiProcessorCount, device),
              "cudaDeviceGetAttribute");
    }
    return counts[device];
}

}  // namespace device
