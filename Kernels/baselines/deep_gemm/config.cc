#include "Kernels/baselines/deep_gemm/config.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

namespace deep_gemm_baseline {
namespace {

constexpr int kSharedCapacity = 232448;
constexpr int kMaxStages = 16;
// Row alignment of groups in the contiguous layout.
constexpr int kContiguousRows = 128;
constexpr int kOutBytes = 2;
constexpr int kSwizzleBytes = 128;

int divide_up(int value, int by) { return (value + by - 1) / by; }
int align(int value, int by) { return divide_up(value, by) * by; }

int element_bytes(const Problem& problem) { return problem.fp8 ? 1 : 2; }

std::vector<int> rows_tried(const Problem& problem) {
    switch (problem.kind) {
        case Kind::kContiguous:
            return {kContiguousRows};
        case Kind::kMasked:
            return {64, 128};
        case Kind::kDense:
            break;
    }
    std::vector<int> rows = {64, 128};
    if (problem.m <= 16) rows.push_back(16);
    if (problem.m <= 32) rows.push_back(32);
    rows.push_back(256);
    return rows;
}

// The largest swizzle that divides a line of the result's tile.
int swizzle_bytes(int block_n) {
    for (const int bytes : {128, 64, 32}) {
        if (block_n * kOutBytes % bytes == 0) return bytes;
    }
    return 16;
}

// Fills in stages and shared memory: as many stages as fit.
void set_stages(const Problem& problem, Config& config) {
    const int blocks_of_k = divide_up(problem.k, config.block_k);
    // A tile that does not divide a scale block of b may touch two of them.
    const int scale_rows = config.block_k % config.block_n == 0 ? 1 : 2;
    const int b_scales = problem.fp8 ? align(blocks_of_k * 4 * scale_rows, 8) : 0;
    const int a_scales = problem.fp8 ? align(config.block_m * 4, 128) : 0;
    const int fixed =
        align(config.block_m * config.block_n * kOutBytes, 1024) + kMaxStages * 2 * 8 + b_scales;
    const int stage = (config.block_m + config.block_n) * kSwizzleBytes + a_scales;
    config.stages = std::min((kSharedCapacity - fixed) / stage, kMaxStages);
    config.shared_bytes = fixed + config.stages * stage;
}

bool is_allowed(const Problem& problem, const Config& config) {
    const int over = config.block_n - config.block_k;
    if (problem.fp8 && over > 0 && config.block_n % over != 0 && config.block_k % over != 0) {
        return false;
    }
    const int cluster = config.cluster_m * config.cluster_n;
    if (problem.kind == Kind::kMasked && divide_up(problem.n, config.block_n) % cluster != 0) {
        return false;
    }
    if (config.block_m > 128 && config.block_n > 128) return false;
    const bool small = config.block_m * config.block_n < 128 * 192;
    return config.stages >= (small ? 4 : 3);
}

// The library's estimate, with its mix of integer and float arithmetic.
std::int64_t cycles(const Problem& problem, const Config& config, int multiprocessors) {
    const bool masked = problem.kind == Kind::kMasked;
    const int rows = masked ? problem.expected_m : problem.m;
    const int blocks = divide_up(rows, config.block_m) * divide_up(problem.n, config.block_n) *
                       (masked ? problem.groups : 1);
    const int waves = divide_up(blocks, multiprocessors);
    if (config.cluster_m * config.cluster_n > 1 && waves <= 1) {
        return std::numeric_limits<std::int64_t>::max();
    }
    const int l2_bytes_per_cycle = static_cast<int>(std::min(64.0 * multiprocessors, 8e6 / 1.3e3));
    const int l1_bytes_per_cycle = 128 * multiprocessors;
    const std::int64_t k = problem.k, bytes = element_bytes(problem);
    const std::int64_t l2_operands =
        k * (config.block_m / config.cluster_n + config.block_n / config.cluster_m) * bytes;
    const std::int64_t l1_operands = k * (config.block_m + config.block_n) * bytes;
    const std::int64_t out = std::int64_t{config.block_m} * config.block_n * kOutBytes;
    const std::int64_t tensor_cores =
        k * (std::max(64, config.block_m) + config.block_n) * bytes + out;
    const std::int64_t l2 = (l2_operands + out) * blocks / l2_bytes_per_cycle;
    const std::int64_t l1 = (l1_operands + tensor_cores + out) * blocks / l1_bytes_per_cycle;
    const float efficiency =
        static_cast<float>(blocks) / static_cast<float>(waves * multiprocessors);
    return static_cast<std::int64_t>(static_cast<float>(std::max(l1, l2)) / efficiency);
}

Config choose_sm90(const Problem& problem, int multiprocessors) {
    const int widest = problem.fp8 ? 192 : 256;
    Config best = {};
    std::int64_t least = 0;
    for (int cluster_m = 1; cluster_m <= 2; ++cluster_m) {
        for (int cluster_n = 1; cluster_n <= 2; ++cluster_n) {
            const int cluster = cluster_m * cluster_n;
            if (cluster > 2 || multiprocessors % cluster != 0) continue;
            for (const int block_m : rows_tried(problem)) {
                for (int block_n = 16; block_n <= widest; block_n += 16) {
                    Config config = {};
                    config.block_m = block_m;
                    config.block_n = block_n;
                    config.block_k = kSwizzleBytes / element_bytes(problem);
                    config.cluster_m = cluster_m;
                    config.cluster_n = cluster_n;
                    set_stages(problem, config);
                    if (!is_allowed(problem, config)) continue;
                    const std::int64_t estimate = cycles(problem, config, multiprocessors);
                    if (best.block_m == 0 || estimate < least) {
                        best = config;
                        least = estimate;
                    }
                }
            }
        }
    }
    if (best.block_m == 0) throw std::invalid_argument("DeepGEMM has no tile for this shape");
    best.threads = 128 + (best.block_m <= 64 ? 128 : 256);
    best.swizzle_d_bytes = swizzle_bytes(best.block_n);
    best.store_rows = best.block_m;
    return best;
}

Config choose_sm100(const Problem& problem) {
    if (problem.kind == Kind::kDense) {
        throw std::invalid_argument("its dense kernels are bridged for sm_90a only");
    }
    Config config = {};
    config.block_m = kContiguousRows;
    config.block_n = 128;
    config.block_k = kSwizzleBytes / element_bytes(problem);
    config.stages = problem.fp8 ? 8 : 9;
    config.cluster_m = 1;
    config.cluster_n = 2;
    config.threads = 256;
    config.shared_bytes = problem.fp8 ? 213820 : 230204;
    config.swizzle_d_bytes = kSwizzleBytes;
    config.store_rows = 16;
    config.swaps = true;
    return config;
}

}  // namespace

Target target_of(int major, int multiprocessors) {
    std::string counts;
    for (const Target& target : {kSm90, kB200, kGb200}) {
        if (target.major != major) continue;
        if (target.multiprocessors == multiprocessors) return target;
        counts += (counts.empty() ? "" : " or ") + std::to_string(target.multiprocessors);
    }
    if (counts.empty()) throw std::invalid_argument("its kernels are for sm_90a and sm_100a");
    throw std::invalid_argument("compiled for " + counts + " multiprocessors, this device has " +
                                std::to_string(multiprocessors));
}

Config choose(const Problem& problem, const Target& target) {
    return target.major == kB200.major ? choose_sm100(problem)
                                       : choose_sm90(problem, target.multiprocessors);
}

std::string to_string(const Config& config) {
    std::string text = std::to_string(config.block_m) + "x" + std::to_string(config.block_n) + "x" +
                       std::to_string(config.block_k) + ", " + std::to_string(config.stages) +
                       " stages";
    if (config.cluster_m > 1) text += ", clusters of 2 share b";
    if (config.cluster_n > 1) text += ", clusters of 2 share a";
    if (config.swaps) text += ", transposed";
    return text;
}

}  // namespace deep_gemm_baseline
