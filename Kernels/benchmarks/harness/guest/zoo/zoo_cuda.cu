// Libraries for CUDA that misbehave, each in one way, which the text after the ? names, with the
// kernels of the bench's own faults. They share the process that measures: what each may cost is
// its own row.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

#include "Kernels/benchmarks/harness/faults/cuda/faults.h"
#include "contender.h"

namespace {

// More calls than the gate makes before a contender is timed.
constexpr int kGateCalls = 6;
// How far from its own tensors one looks for those of others, in steps of what the driver maps at a
// time.
constexpr uintptr_t kReach = uintptr_t{4} << 30, kGranule = uintptr_t{2} << 20;

// Those of faults.cu by their numbers there.
constexpr const char* kModes[] = {
    "well",           "wrong_result", "not_a_number",    "unwritten_tail",      "out_of_bounds",
    "input_mutation", "wrong_stream", "illegal_address", "hangs_on_the_device", "one_percent_more",
    "slow",           "senses_nan",   "senses_garbage",
};

struct Work {
    size_t x, w, y, rows, columns, bytes, kept, kept_inputs;
    std::string fault;
    uint32_t mode;
    bool has_kept;

    bool Is(const char* name) const { return fault == name; }
};

int calls;

// Overwrites whatever is mapped around its own tensors.
void WriteToOthers(const Work& it) {
    using Range = CUresult (*)(CUdeviceptr*, size_t*, CUdeviceptr);
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto range = reinterpret_cast<Range>(dlsym(driver, "cuMemGetAddressRange_v2"));
    for (uintptr_t at = it.y - kReach; at < it.y + kReach; at += kGranule) {
        CUdeviceptr base = 0;
        size_t bytes = 0;
        if (range(&base, &bytes, at) != CUDA_SUCCESS) continue;
        cudaMemset(reinterpret_cast<void*>(base), 0x7f, bytes);
    }
}

void* Bind(const contender_problem* problem, char*, size_t) {
    const auto address = [&](const char* name) {
        return reinterpret_cast<size_t>(contender_find(problem, name)->address);
    };
    const contender_tensor* x = contender_find(problem, "x");
    auto* it = new Work{address("x"),
                        address("w"),
                        address("y"),
                        static_cast<size_t>(x->shape[0]),
                        static_cast<size_t>(x->shape[1]),
                        x->bytes,
                        harness_faults::allocate(x->bytes),
                        harness_faults::allocate(x->bytes),
                        problem->options,
                        0,
                        false};
    for (uint32_t mode = 0; mode < std::size(kModes); ++mode) {
        if (it->Is(kModes[mode])) it->mode = mode;
    }
    // A child that would outlive everybody and hold what it inherited.
    if (it->Is("forks") && fork() == 0) {
        for (;;) pause();
    }
    return it;
}

int32_t Enqueue(void* handle, void* given) {
    Work& it = *static_cast<Work*>(handle);
    const auto stream = reinterpret_cast<size_t>(given);
    const bool timed = ++calls > kGateCalls;
    const auto launch = [&](size_t to, uint32_t mode) {
        harness_faults::launch(it.x, it.w, to, it.rows, it.columns, mode, stream);
    };
    if (it.Is("crashes")) *reinterpret_cast<volatile int*>(uintptr_t{8}) = 1;
    if (it.Is("throws")) throw std::runtime_error("across the border");
    if (it.Is("exits")) exit(0);
    if (it.Is("fails")) return 7;
    if (it.Is("hangs")) {
        for (;;) pause();
    }
    if (it.Is("resets_the_device")) cudaDeviceReset();
    if (it.Is("closes_everything")) {
        for (int file = 0; file < 4096; ++file) close(file);
    }
    if (it.Is("prints_megabytes") && calls == 1) {
        for (int line = 0; line < 100000; ++line) printf("all work and no play %d\n", line);
    }
    if (it.Is("writes_to_others") && timed) WriteToOthers(it);
    // After its own call, in whoever's turn that is.
    if (it.Is("aborts_later") && calls == 1) {
        std::thread([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            abort();
        }).detach();
    }
    if (it.Is("idle_when_timed") && timed) return 0;
    if (it.Is("cached_output")) {
        if (!it.has_kept) launch(it.kept, 0);
        it.has_kept = true;
        harness_faults::copy(it.y, it.kept, it.bytes, stream);
    } else if (it.Is("memoises")) {
        harness_faults::memoise(it.x, it.w, it.y, it.rows, it.columns, it.kept_inputs, it.kept,
                                false, stream);
    } else if (it.Is("side_stream") || it.Is("host_work")) {
        harness_faults::aside(it.x, it.w, it.y, it.rows, it.columns, it.kept, it.Is("host_work"),
                              stream);
    } else {
        launch(it.y, it.mode);
    }
    return 0;
}

const char* const kOps[] = {"scaled", nullptr};

}  // namespace

const contender_description* contender_library() {
    static const contender_description library = {
        CONTENDER_ABI_VERSION,
        sizeof(contender_description),
        "zoo on CUDA",
        "1",
        kOps,
        nullptr,
        Bind,
        Enqueue,
        nullptr,
        nullptr,
    };
    return &library;
}
