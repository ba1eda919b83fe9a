// Kernels that are loaded at run time, in place of those that are linked.
#include <stdexcept>
#include <string>

#include "Kernels/baselines/deep_gemm/gemm.h"
#include "Kernels/device/launch.h"

namespace deep_gemm_baseline {

Built::Built(const void* code) {
    const char* what = "DeepGEMM's kernel, built on demand";
    device::check(cudaLibraryLoadData(&library_, code, nullptr, nullptr, 0, nullptr, nullptr, 0),
                  what);
    unsigned count = 0;
    cudaError_t status = cudaLibraryGetKernelCount(&count, library_);
    if (status == cudaSuccess && count == 1) {
        status = cudaLibraryEnumerateKernels(&kernel_, 1, library_);
    }
    if (status != cudaSuccess || count != 1) {
        static_cast<void>(cudaLibraryUnload(library_));
        device::check(status, what);
        throw std::invalid_argument(std::to_string(count) + " kernels in the code; expected one");
    }
}

// A failure here means that the context is gone, and the library with it.
Built::~Built() { static_cast<void>(cudaLibraryUnload(library_)); }

void Built::launch(const Gemm& gemm, const Config& config, const Target& target,
                   cudaStream_t stream) const {
#ifdef DEEP_GEMM_WITH_SM90
    if (target.major == kSm90.major) return launch_built_sm90(kernel_, gemm, config, stream);
#endif
#ifdef DEEP_GEMM_WITH_SM100
    if (target.major == kB200.major) return launch_built_sm100(kernel_, gemm, config, stream);
#endif
    static_cast<void>(gemm);
    static_cast<void>(config);
    static_cast<void>(stream);
    throw std::invalid_argument("this program is not built for compute capability " +
                                std::to_string(target.major));
}

}  // namespace deep_gemm_baseline
