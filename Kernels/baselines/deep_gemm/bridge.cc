#include "Kernels/baselines/deep_gemm/bridge.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/baselines/deep_gemm/gemm.h"
#include "Kernels/baselines/deep_gemm/lib.rs.h"
#include "Kernels/device/launch.h"

namespace deep_gemm_baseline::bridge {
namespace {

int narrow(const char* name, std::size_t value) {
    if (value > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                                    "; that does not fit in 31 bits");
    }
    return static_cast<int>(value);
}

Kind kind(Layout layout) {
    switch (layout) {
        case Layout::Dense:
            return Kind::kDense;
        case Layout::Contiguous:
            return Kind::kContiguous;
        case Layout::Masked:
            return Kind::kMasked;
    }
    throw std::invalid_argument("unknown layout");
}

Problem problem_of(const Gemm& gemm) {
    Problem problem = {};
    problem.kind = kind(gemm.layout);
    problem.fp8 = gemm.fp8;
    problem.m = narrow("m", gemm.m);
    problem.n = narrow("n", gemm.n);
    problem.k = narrow("k", gemm.k);
    problem.groups = narrow("groups", gemm.groups);
    problem.expected_m = narrow("expected_m", gemm.expected_m);
    return problem;
}

// Everything that decides whether a kernel runs, before any is launched.
Launch require_kernel(const Problem& problem, const Config& config) {
    int device = 0, major = 0;
    device::check(cudaGetDevice(&device), "cudaGetDevice");
    device::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                  "cudaDeviceGetAttribute");
    if (major != 9) throw std::invalid_argument("only its sm_90a kernels are bridged");
    if (device::multiprocessors() != kMultiprocessors) {
        throw std::invalid_argument("compiled for 132 multiprocessors, this device has " +
                                    std::to_string(device::multiprocessors()));
    }
    if (problem.n % 8 != 0 || problem.k % (problem.fp8 ? 128 : 64) != 0) {
        throw std::invalid_argument("n must be a multiple of 8, k of 64 (128 with FP8)");
    }
    if (problem.kind == Kind::kMasked && problem.m % config.block_m != 0) {
        // Its stores are whole tiles, and would reach into the next group's rows.
        throw std::invalid_argument("a group's room of " + std::to_string(problem.m) +
                                    " rows is no multiple of its tile's " +
                                    std::to_string(config.block_m));
    }
    const Launch launch = find_kernel(problem, config);
    if (launch == nullptr) {
        throw std::invalid_argument("its choice for this shape, " + to_string(config) +
                                    ", is not among the kernels compiled ahead");
    }
    return launch;
}

}  // namespace

Choice choice(const Gemm& gemm) {
    const Problem problem = problem_of(gemm);
    const Config config = choose(problem, kMultiprocessors);
    require_kernel(problem, config);
    Choice result;
    result.tile = std::to_string(config.block_m) + "x" + std::to_string(config.block_n) + "x" +
                  std::to_string(config.block_k);
    result.stages = config.stages;
    result.multicast = config.cluster_m > 1 ? "b" : config.cluster_n > 1 ? "a" : "none";
    result.shared_bytes = config.shared_bytes;
    return result;
}

void enqueue(const Gemm& gemm, std::size_t stream) {
    deep_gemm_baseline::Gemm params = {};
    params.a = reinterpret_cast<const void*>(gemm.a);
    params.b = reinterpret_cast<const void*>(gemm.b);
    params.out = reinterpret_cast<void*>(gemm.out);
    params.a_scales = reinterpret_cast<const float*>(gemm.a_scales);
    params.b_scales = reinterpret_cast<const float*>(gemm.b_scales);
    params.index = reinterpret_cast<int*>(gemm.index);
    params.problem = problem_of(gemm);
    const Config config = choose(params.problem, kMultiprocessors);
    require_kernel(params.problem, config)(params, config, reinterpret_cast<CUstream_st*>(stream));
}

}  // namespace deep_gemm_baseline::bridge
