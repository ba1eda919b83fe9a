#include "Kernels/device/launch.h"
#include "Kernels/device/machine.h"

namespace device {
namespace {

int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
    return value;
}

// Machine code of an `a` target runs on its own compute capability alone: a shelf counts where this
// very SM was built.
Arch shelf_of(int major, int minor) {
#ifdef H2H_REWRITTEN
    // Kernels for sm_100a, rewritten for sm_90a.
    if (major == 9) major = 10;
#endif
    switch (10 * major + minor) {
#ifdef H2H_BUILT_SM_90A
        case 90:
            return Arch::kHopper;
#endif
#ifdef H2H_BUILT_SM_100A
        case 100:
            return Arch::kBlackwell;
#endif
#ifdef H2H_BUILT_SM_103A
        case 103:
            return Arch::kBlackwell;
#endif
        default:
            return Arch::kPortable;
    }
}

__global__ void probe_kernel() {}

int count_largest_clusters(int device) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = kMaxClusterBlocks;
    cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(kMaxClusterBlocks);
    config.blockDim = dim3(32);
    // All that a block may have, so that it is alone on its SM.
    config.dynamicSmemBytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    config.attrs = &cluster;
    config.numAttrs = 1;
    int count = 0;
    const bool found =
        cudaFuncSetAttribute(probe_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) ==
            cudaSuccess &&
        cudaFuncSetAttribute(probe_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(config.dynamicSmemBytes)) == cudaSuccess &&
        cudaOccupancyMaxActiveClusters(&count, probe_kernel, &config) == cudaSuccess;
    // A refusal means that there are none, and is not the next launch's error.
    if (!found) cudaGetLastError();
    return found ? count : 0;
}

}  // namespace

int largest_clusters() {
    // One more than the count; 0: not queried yet.
    static int counts[kMaxDevices] = {};
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    if (device >= kMaxDevices) throw std::runtime_error("device number above 63");
    if (counts[device] == 0) counts[device] = 1 + count_largest_clusters(device);
    return counts[device] - 1;
}

Machine current_machine() {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    return {multiprocessors(), shelf_of(attribute(cudaDevAttrComputeCapabilityMajor, device),
                                        attribute(cudaDevAttrComputeCapabilityMinor, device))};
}

}  // namespace device
