#include "Kernels/baselines/deep_gemm/sm100.cuh"

namespace deep_gemm_baseline {
namespace {

// The library has one tile for all.
template <int kMultiprocessors, Kind kKind, int kN, int kK, int kGroups>
constexpr Compiled compiled() {
    return Sm100<kMultiprocessors, Operands::kFp8, kKind, kN, kK, kGroups, 128, 128, 1, 2,
                 true>::compiled();
}

// What the suites need: kind, n, k, groups (masked only).
template <int kMultiprocessors>
constexpr Compiled kTable[] = {
    compiled<kMultiprocessors, Kind::kContiguous, 4096, 7168, 1>(),
    compiled<kMultiprocessors, Kind::kContiguous, 7168, 2048, 1>(),
    compiled<kMultiprocessors, Kind::kMasked, 4096, 7168, 8>(),
    compiled<kMultiprocessors, Kind::kMasked, 4096, 7168, 64>(),
    compiled<kMultiprocessors, Kind::kMasked, 7168, 2048, 32>(),
};

}  // namespace

Launch find_sm100_fp8_grouped(const Problem& problem, const Config& config, const Target& target) {
    return target.multiprocessors == kGb200.multiprocessors
               ? find(kTable<kGb200.multiprocessors>, problem, config)
               : find(kTable<kB200.multiprocessors>, problem, config);
}

}  // namespace deep_gemm_baseline
