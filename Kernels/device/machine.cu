#include "Kernels/device/built.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/machine.h"

namespace device {
namespace {

int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
    return value;
}

// Kernels for sm_90a run only on 9.0, those for sm_100a only on 10.0.
Arch shelf_of(int major, int minor) {
    if (minor != 0) return Arch::kPortable;
    return major == 9 ? Arch::kHopper : major == 10 ? Arch::kBlackwell : Arch::kPortable;
}

}  // namespace

Machine current_machine() {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    const Arch arch = shelf_of(attribute(cudaDevAttrComputeCapabilityMajor, device),
                               attribute(cudaDevAttrComputeCapabilityMinor, device));
    return {multiprocessors(), built(arch) ? arch : Arch::kPortable};
}

}  // namespace device
