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

}  // namespace

Machine current_machine() {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    return {multiprocessors(), shelf_of(attribute(cudaDevAttrComputeCapabilityMajor, device),
                                        attribute(cudaDevAttrComputeCapabilityMinor, device))};
}

}  // namespace device
