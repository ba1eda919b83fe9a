// Kernels compiled ahead of time by CuTe DSL: found by name, loaded once per device, launched.
//
// For the calling convention see docs/ARTIFACTS.md. Loading is done here and not by the generated
// headers, whose loader reads an uninitialised device count if there is no driver.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#ifdef CUTE_KERNELS_PTX
// Of Kernels/emulator/runtime: the PTX of the library that this thread loads next.
extern "C" void interpreter_next_library(const char* text);
#endif

namespace cute_kernels {

// A line of an archive's kernels.inc.
struct Kernel {
    const char* name;
    void (*init)(void**);
    void (*load)(void**);
    void (*entry)(void**, std::int32_t);
    // Including the status, which comes last.
    std::int32_t argument_count;
    // Where the interpreter runs it, which has no use for the machine code that `init` loads.
    const char* ptx = nullptr;
};

// A line of an archive's ptx.inc.
struct Text {
    const char* name;
    const char* ptx;
};

template <std::size_t kCount>
const char* text_of(const Text (&texts)[kCount], std::string_view name) {
    for (const Text& text : texts) {
        if (name == text.name) return text.ptx;
    }
    return nullptr;
}

// A linked archive: its source and its kernels.
struct Archive {
    const char* version = nullptr;
    const char* sha256 = nullptr;
    const Kernel* kernels = nullptr;
    std::size_t count = 0;

    const Kernel* find(std::string_view name) const {
        for (std::size_t i = 0; i < count; ++i) {
            if (name == kernels[i].name) return &kernels[i];
        }
        return nullptr;
    }
};

// A kernel of a library that was opened at run time and stays open: like a linked one, it lives as
// long as the program.
inline const Kernel& opened(std::string_view name, std::uintptr_t init, std::uintptr_t load,
                            std::uintptr_t entry, std::int32_t argument_count) {
    struct Opened {
        std::string name;
        Kernel kernel;
    };
    static std::mutex mutex;
    static std::map<std::uintptr_t, Opened> all;

    const std::lock_guard<std::mutex> lock(mutex);
    const auto [place, is_new] = all.try_emplace(entry);
    Opened& found = place->second;
    if (is_new) {
        found.name = name;
        found.kernel = {found.name.c_str(), reinterpret_cast<void (*)(void**)>(init),
                        reinterpret_cast<void (*)(void**)>(load),
                        reinterpret_cast<void (*)(void**, std::int32_t)>(entry), argument_count};
    }
    return found.kernel;
}

inline std::string describe(cudaError_t status) {
    return std::string(cudaGetErrorName(status)) + ", " + cudaGetErrorString(status);
}

inline void check(cudaError_t status, const char* kernel, const char* what) {
    if (status == cudaSuccess) return;
    throw std::runtime_error(std::string(kernel) + ": " + what + ": " + describe(status));
}

// Loads a kernel's code on the current device, once.
inline void load(const Kernel& kernel) {
    struct Loaded {
        cudaLibrary_t library = nullptr;
        std::set<std::int32_t> devices;
    };
    static std::mutex mutex;
    static std::map<const Kernel*, Loaded> all;

    std::int32_t device = 0;
    check(cudaGetDevice(&device), kernel.name, "cudaGetDevice");
    // The runtime creates its context on the first call that needs one.
    check(cudaFree(nullptr), kernel.name, "open the device");
    const std::lock_guard<std::mutex> lock(mutex);
    Loaded& loaded = all[&kernel];
    cudaLibrary_t* library = &loaded.library;
    cudaError_t status = cudaSuccess;
    if (loaded.library == nullptr) {
#ifdef CUTE_KERNELS_PTX
        interpreter_next_library(kernel.ptx);
#endif
        void* arguments[] = {&library, &status};
        kernel.init(arguments);
        check(status, kernel.name, "load its library");
        if (loaded.library == nullptr) {
            throw std::runtime_error(std::string(kernel.name) + ": no library was loaded");
        }
    }
    if (loaded.devices.count(device) == 0) {
        void* arguments[] = {&library, &device, &status};
        kernel.load(arguments);
        check(status, kernel.name, "load it on the device");
        loaded.devices.insert(device);
    }
}

// Enqueues a loaded kernel. `arguments` point to values in the order of kernels.json, without
// stream and status.
inline void launch(const Kernel& kernel, std::vector<void*> arguments, cudaStream_t stream) {
    std::int32_t status = 0;
    arguments.push_back(&stream);
    arguments.push_back(&status);
    if (arguments.size() != static_cast<std::size_t>(kernel.argument_count)) {
        throw std::logic_error(std::string(kernel.name) + ": " + std::to_string(arguments.size()) +
                               " arguments, it takes " + std::to_string(kernel.argument_count));
    }
    kernel.entry(arguments.data(), kernel.argument_count);
    check(static_cast<cudaError_t>(status), kernel.name, "launch");
}

}  // namespace cute_kernels
