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

bool is_fp8(const Problem& problem) { return problem.operands == Operands::kFp8; }
bool is_mx(const Problem& problem) {
    return problem.operands == Operands::kMxfp8 || problem.operands == Operands::kMxfp4;
}
int element_bytes(const Problem& problem) { return element_bits(problem.operands) / 8; }

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
    const int b_scales = is_fp8(problem) ? align(blocks_of_k * 4 * scale_rows, 8) : 0;
    const int a_scales = is_fp8(problem) ? align(config.block_m * 4, 128) : 0;
    const int fixed =
        align(config.block_m * config.block_n * kOutBytes, 1024) + kMaxStages * 2 * 8 + b_scales;
    const int stage = (config.block_m + config.block_n) * kSwizzleBytes + a_scales;
    config.stages = std::min((kSharedCapacity - fixed) / stage, kMaxStages);
    config.shared_bytes = fixed + config.stages * stage;
}

bool is_allowed(const Problem& problem, const Config& config) {
    const int over = config.block_n - config.block_k;
    if (is_fp8(problem) && over > 0 && config.block_n % over != 0 && config.block_k % over != 0) {
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
    if (is_mx(problem)) throw std::invalid_argument("its MXFP8 and MXFP4 are for sm_100a");
    const int widest = is_fp8(problem) ? 192 : 256;
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

// As many blocks as a tile makes, in turns of all multiprocessors.
struct Waves {
    int count;
    int blocks_of_last;
};

Waves waves(const Problem& problem, const Config& config, int multiprocessors) {
    const int blocks = divide_up(problem.m, config.block_m) * divide_up(problem.n, config.block_n);
    const int rest = blocks % multiprocessors;
    return {divide_up(blocks, multiprocessors), rest == 0 ? multiprocessors : rest};
}

// The library's order of tiles on sm_100a.
bool is_better(const Problem& problem, const Config& one, const Config& other,
               int multiprocessors) {
    const Waves mine = waves(problem, one, multiprocessors);
    const Waves theirs = waves(problem, other, multiprocessors);
    if ((mine.count == 1) != (theirs.count == 1)) return mine.count == 1;
    const int cluster = one.cluster_m * one.cluster_n;
    if (cluster != other.cluster_m * other.cluster_n) return cluster == 2;
    if (mine.count != theirs.count) return mine.count < theirs.count;
    if (mine.blocks_of_last != theirs.blocks_of_last) {
        return mine.blocks_of_last > theirs.blocks_of_last;
    }
    const int sides = one.block_m + one.block_n, other_sides = other.block_m + other.block_n;
    if (sides != other_sides) return sides < other_sides;
    return one.block_m * one.block_n < other.block_m * other.block_n;
}

// The tiles that the library tries for a dense GEMM on sm_100a, in its order. A pair of blocks
// shares b, or a where it computes the transposed product, whose 128 rows are columns of the
// result.
std::vector<Config> dense_tiles_sm100(const Problem& problem) {
    std::vector<Config> tiles;
    const auto add = [&](int block_m, int block_n, int cluster_m, int cluster_n, bool swaps) {
        if (divide_up(problem.m, block_m) % cluster_m != 0) return;
        if (divide_up(problem.n, block_n) % cluster_n != 0) return;
        Config config = {};
        config.block_m = block_m;
        config.block_n = block_n;
        config.cluster_m = cluster_m;
        config.cluster_n = cluster_n;
        config.swaps = swaps;
        tiles.push_back(config);
    };
    const int block_m = problem.m <= 32 ? 32 : problem.m <= 64 ? 64 : 128;
    const int widest = problem.k <= 256 ? 128 : 256;
    for (const int cluster : {1, 2}) {
        add(block_m, 16, cluster, 1, false);
        for (int block_n = 32; block_n <= widest; block_n += 32) {
            add(block_m, block_n, cluster, 1, false);
        }
    }
    for (const int cluster : {1, 2}) {
        for (int rows = 16; rows <= 256; rows += 16) add(rows, 128, 1, cluster, true);
    }
    return tiles;
}

// Fills in the rest of a tile.
Config completed_sm100(const Problem& problem, Config config) {
    const Pipeline pipeline = pipeline_sm100(problem.operands, config.block_m, config.block_n,
                                             config.cluster_m, config.cluster_n, config.swaps);
    config.stages = pipeline.stages;
    config.shared_bytes = pipeline.shared_bytes;
    config.block_k = 8 * kSwizzleBytes / element_bits(problem.operands);
    config.threads = 256;
    config.swizzle_d_bytes = swizzle_bytes(config.block_n);
    config.store_rows = config.swaps ? 16 : config.block_m;
    return config;
}

Config choose_sm100_dense(const Problem& problem, int multiprocessors) {
    if (problem.operands == Operands::kBf16) {
        throw std::invalid_argument("it calls cuBLASLt for dense bf16, a contender of its own");
    }
    const std::vector<Config> tiles = dense_tiles_sm100(problem);
    Config best = tiles.front();
    for (const Config& tile : tiles) {
        if (is_better(problem, tile, best, multiprocessors)) best = tile;
    }
    return completed_sm100(problem, best);
}

Config choose_sm100(const Problem& problem, int multiprocessors) {
    if (problem.kind == Kind::kDense) return choose_sm100_dense(problem, multiprocessors);
    if (is_mx(problem)) throw std::invalid_argument("its grouped MXFP8 and MXFP4 are not bridged");
    Config config = {};
    config.block_m = kContiguousRows;
    config.block_n = 128;
    config.cluster_m = 1;
    config.cluster_n = 2;
    config.swaps = true;
    return completed_sm100(problem, config);
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
    return target.major == kB200.major ? choose_sm100(problem, target.multiprocessors)
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
