#include "Kernels/baselines/flashinfer/driver.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <climits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "Kernels/device/launch.h"

namespace fi {
namespace {

thread_local Rehearsal* rehearsal = nullptr;

bool pretended() {
    return rehearsal != nullptr && rehearsal->modules == Rehearsal::Modules::kPretended;
}

// Names of functions by handle: the driver does not report them.
class Names {
  public:
    void add(CUfunction function, const char* name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        names_[function] = name;
    }

    std::string of(CUfunction function) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = names_.find(function);
        return found == names_.end() ? "a function that was not loaded here" : found->second;
    }

    // A stand-in for a function that was not loaded; one per name.
    CUfunction stand_in(const char* name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const std::string& kept = *stand_ins_.insert(name).first;
        const auto function = reinterpret_cast<CUfunction>(const_cast<std::string*>(&kept));
        names_[function] = kept;
        return function;
    }

  private:
    std::mutex mutex_;
    std::unordered_map<CUfunction, std::string> names_;
    std::set<std::string> stand_ins_;
};

Names& names() {
    static Names names;
    return names;
}

template <class Function>
Function* find(const char* name) {
    // All of them are as old as CUDA 12.
    constexpr unsigned kVersion = 12000;
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    device::check(
        cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result), name);
    if (result != cudaDriverEntryPointSuccess) {
        throw std::runtime_error(std::string("the driver has no ") + name +
                                 "; CUDA 12 or newer is needed");
    }
    return reinterpret_cast<Function*>(found);
}

std::string describe(CUresult status) {
    const char* text = nullptr;
    if (find<decltype(cuGetErrorName)>("cuGetErrorName")(status, &text) != CUDA_SUCCESS) {
        return "error " + std::to_string(static_cast<int>(status));
    }
    return text;
}

CUresult check(CUresult status, const char* name) {
    if (status == CUDA_SUCCESS) return status;
    throw std::runtime_error(std::string(name) + ": " + describe(status));
}

}  // namespace

Rehearsal::Rehearsal(Modules modules) : modules(modules), outer_(rehearsal) { rehearsal = this; }

Rehearsal::~Rehearsal() { rehearsal = outer_; }

Rehearsal* Rehearsal::current() { return rehearsal; }

}  // namespace fi

// Calls the driver's function of this name. A macro, because the name is also needed as text.
#define FI_DRIVER(name, ...)                                               \
    fi::check(                                                             \
        [] {                                                               \
            static auto* const function = fi::find<decltype(name)>(#name); \
            return function;                                               \
        }()(__VA_ARGS__),                                                  \
        #name)

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    if (fi::pretended()) {
        *module = nullptr;
        return CUDA_SUCCESS;
    }
    return FI_DRIVER(cuModuleLoadData, module, image);
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    if (fi::pretended()) {
        *function = fi::names().stand_in(name);
        return CUDA_SUCCESS;
    }
    FI_DRIVER(cuModuleGetFunction, function, module, name);
    fi::names().add(*function, name);
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    if (fi::pretended()) return CUDA_SUCCESS;
    return FI_DRIVER(cuFuncSetAttribute, function, attribute, value);
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                      const CUlaunchConfig* config) {
    if (fi::pretended()) {
        // A large number that can still be multiplied by the cluster size.
        *clusters = fi::rehearsal->clusters_fit ? 1 << 20 : 0;
        return CUDA_SUCCESS;
    }
    return FI_DRIVER(cuOccupancyMaxActiveClusters, clusters, function, config);
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* shape, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    if (fi::pretended()) {
        // Rejects what the driver would reject, so that a test without a device sees it.
        constexpr cuuint64_t kStrideBytes = 16;
        constexpr cuuint64_t kMostStrideBytes = cuuint64_t{1} << 40;
        constexpr cuuint32_t kMostBox = 256;
        for (cuuint32_t i = 0; i + 1 < rank; ++i) {
            if (strides[i] % kStrideBytes != 0 || strides[i] >= kMostStrideBytes) {
                throw std::invalid_argument("a tensor map with a stride of " +
                                            std::to_string(strides[i]) +
                                            " bytes; multiples of 16 below 2^40 can be encoded");
            }
        }
        for (cuuint32_t i = 0; i < rank; ++i) {
            if (box[i] == 0 || box[i] > kMostBox) {
                throw std::invalid_argument("a tensor map with a box of " + std::to_string(box[i]) +
                                            "; 1 to 256 can be encoded");
            }
        }
        return CUDA_SUCCESS;
    }
    return FI_DRIVER(cuTensorMapEncodeTiled, map, type, rank, address, shape, strides, box, steps,
                     interleave, swizzle, promotion, fill);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                          void** extra) {
    if (fi::rehearsal != nullptr) {
        fi::rehearsal->launches.push_back(fi::names().of(function));
        return CUDA_SUCCESS;
    }
    return FI_DRIVER(cuLaunchKernelEx, config, function, params, extra);
}

// The headers call these for the text of an error after a failed call; here that call has thrown.
CUresult cuGetErrorName(CUresult, const char** text) {
    *text = "an error of the driver";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char** text) {
    *text = "an error of the driver";
    return CUDA_SUCCESS;
}

}  // extern "C"
