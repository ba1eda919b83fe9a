#include "Kernels/baselines/deep_gemm/bridge.h"

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "Kernels/baselines/deep_gemm/lib.rs.h"
#include "Kernels/bridge/convert.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/machine.h"

namespace deep_gemm_baseline::bridge {
namespace {

using device::narrow;
using device::pointer;

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

deep_gemm_baseline::Operands kind(Operands operands) {
    switch (operands) {
        case Operands::Bf16:
            return deep_gemm_baseline::Operands::kBf16;
        case Operands::Fp8:
            return deep_gemm_baseline::Operands::kFp8;
        case Operands::Mxfp8:
            return deep_gemm_baseline::Operands::kMxfp8;
        case Operands::Mxfp4:
            return deep_gemm_baseline::Operands::kMxfp4;
    }
    throw std::invalid_argument("unknown operands");
}

Problem problem_of(const Gemm& gemm) {
    Problem problem = {};
    problem.kind = kind(gemm.layout);
    problem.operands = kind(gemm.operands);
    problem.m = narrow("m", gemm.m);
    problem.n = narrow("n", gemm.n);
    problem.k = narrow("k", gemm.k);
    problem.groups = narrow("groups", gemm.groups);
    problem.expected_m = narrow("expected_m", gemm.expected_m);
    return problem;
}

// The current device, if kernels are compiled for it.
Target target() {
    const device::Machine machine = device::current_machine();
    const int major = machine.arch == device::Arch::kBlackwell ? 10
                      : machine.arch == device::Arch::kHopper  ? 9
                                                               : 0;
    // A Hopper card that runs rewritten kernels takes those for a B200: their blocks take turns.
    int device = 0, card = 0;
    device::check(cudaGetDevice(&device), "cudaGetDevice");
    device::check(cudaDeviceGetAttribute(&card, cudaDevAttrComputeCapabilityMajor, device),
                  "cudaDeviceGetAttribute");
    if (major == kB200.major && card != major) return kB200;
    return target_of(major, machine.multiprocessors);
}

// Checks everything that decides whether a kernel of the config can run, before any launch.
void require(const Problem& problem, const Config& config) {
    const bool is_bf16 = problem.operands == deep_gemm_baseline::Operands::kBf16;
    if (problem.n % 8 != 0 || problem.k % (is_bf16 ? 64 : 128) != 0) {
        throw std::invalid_argument("n must be a multiple of 8, k of 64 (128 with scales)");
    }
    if (problem.kind == Kind::kMasked && problem.m % config.block_m != 0) {
        // Its stores are whole tiles and would overwrite the next group's rows.
        throw std::invalid_argument("a group's room of " + std::to_string(problem.m) +
                                    " rows is not a multiple of its tile's " +
                                    std::to_string(config.block_m));
    }
}

void require_scales(const Gemm& gemm, const Target& device) {
    if (gemm.tiled_scales && device.major != kB200.major) {
        throw std::invalid_argument("its kernels for Hopper take fp32 scales; use fp8_e4m3");
    }
}

Choice choice_on(const Gemm& gemm, const Target& device) {
    require_scales(gemm, device);
    const Problem problem = problem_of(gemm);
    const Config config = choose(problem, device);
    require(problem, config);
    Choice result;
    result.tile = std::to_string(config.block_m) + "x" + std::to_string(config.block_n) + "x" +
                  std::to_string(config.block_k);
    result.block_m = config.block_m;
    result.block_n = config.block_n;
    result.stages = config.stages;
    result.cluster_m = config.cluster_m;
    result.cluster_n = config.cluster_n;
    result.multicast = config.cluster_m > 1 ? "b" : config.cluster_n > 1 ? "a" : "none";
    result.shared_bytes = config.shared_bytes;
    result.swaps = config.swaps;
    result.is_linked = find_kernel(problem, config, device) != nullptr;
    result.words = to_string(config);
    return result;
}

// Plans of the same code share it: its first launch loads it, which waits for the device, and must
// not happen again while a stream is held.
std::shared_ptr<const Built> loaded(rust::Slice<const std::uint8_t> code) {
    static std::mutex mutex;
    static std::map<std::string, std::weak_ptr<const Built>> all;
    const std::lock_guard<std::mutex> lock(mutex);
    std::weak_ptr<const Built>& known = all[std::string(code.begin(), code.end())];
    std::shared_ptr<const Built> built = known.lock();
    if (built == nullptr) known = built = std::make_shared<const Built>(code.data());
    return built;
}

}  // namespace

Choice choice(const Gemm& gemm) { return choice_on(gemm, target()); }

Choice choice_for_sm90(const Gemm& gemm) { return choice_on(gemm, kSm90); }

Choice choice_for_b200(const Gemm& gemm) { return choice_on(gemm, kB200); }

Plan::Plan(const Gemm& gemm, std::shared_ptr<const Built> built) : built_(std::move(built)) {
    gemm_.a = pointer<void>(gemm.a);
    gemm_.b = pointer<void>(gemm.b);
    gemm_.out = pointer<void>(gemm.out);
    gemm_.a_scales = pointer<void>(gemm.a_scales);
    gemm_.b_scales = pointer<void>(gemm.b_scales);
    gemm_.index = pointer<int>(gemm.index);
    gemm_.problem = problem_of(gemm);
    const Target device = target_ = target();
    config_ = choose(gemm_.problem, device);
    require(gemm_.problem, config_);
    launch_ = find_kernel(gemm_.problem, config_, device);
    if (launch_ == nullptr && built_ == nullptr) {
        throw std::invalid_argument("its choice for this shape, " + to_string(config_) +
                                    ", is not one of the kernels compiled ahead of time");
    }
    require_scales(gemm, device);
    if (gemm.operands == Operands::Bf16 || device.major != kB200.major) return;
    const PackedWords words = packed_words(gemm_.problem);
    packed_ = device::Memory((words.a + words.b) * sizeof(std::uint32_t));
    auto* const a = static_cast<std::uint32_t*>(packed_.start());
    auto* const b = a + words.a;
    const auto pack = gemm.tiled_scales ? pack_tiled_scales : pack_scales;
    pack_ = [pack, a, b, given = gemm_] { pack(given, a, b, nullptr); };
    gemm_.a_scales = a;
    gemm_.b_scales = b;
    reread();
}

void Plan::reread() const {
    if (!pack_) return;
    device::check(cudaDeviceSynchronize(), "filling the scales");
    pack_();
    device::check(cudaDeviceSynchronize(), "packing the scales");
}

void Plan::enqueue(std::size_t stream) const {
    if (built_ != nullptr)
        return built_->launch(gemm_, config_, target_, pointer<CUstream_st>(stream));
    launch_(gemm_, config_, pointer<CUstream_st>(stream));
}

std::unique_ptr<Plan> plan(const Gemm& gemm) { return std::make_unique<Plan>(gemm, nullptr); }

std::unique_ptr<Plan> plan_built(const Gemm& gemm, rust::Slice<const std::uint8_t> code) {
    return std::make_unique<Plan>(gemm, loaded(code));
}

}  // namespace deep_gemm_baseline::bridge
