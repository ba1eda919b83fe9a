#include "Kernels/norms/config.h"

#include <algorithm>
#include <optional>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"

namespace norms {
namespace {

constexpr int kWarp = 32;
// Warps per SM that cover memory latency with their loads, and that fit.
constexpr int kBusyWarps = 32;
constexpr int kFewWarps = 64;
// RMSNorm with two packets per thread: warps that an SM holds, and the number from which blocks
// that fill it with them are best.
constexpr int kLeanWarps = 48;
constexpr int kManyWarps = 16 * kLeanWarps;
// The same for fused add: warps up to which two packets per thread are best, and packets of a row
// whose blocks still fill an SM with four.
constexpr int kFewInPlaceWarps = 224;
constexpr int kFullBlocks = 896;
// Shared memory per SM for staged rows (sm_90a and sm_100a have 228 KiB; the rest is L1), and what
// a block needs besides rows: reductions, barriers, the system's reserve.
constexpr int kSharedBytes = 212 * 1024;
constexpr int kMostSharedBytes = 227 * 1024;
constexpr int kOwnSharedBytes = 2 * 1024;
// Rows per block for the ring to be worth filling, and for the third stage or a second block.
constexpr int kRowsPerBlock = 3;
constexpr int kManyRowsPerBlock = 8;
// Row packets up to which four vectors per thread are best even beside other work, and the most
// that half of the largest block holds with two each.
constexpr int kShortRows = 768;
constexpr int kHalfBlock = 1024;
// Most vectors per lane if a row is held by one warp or less.
constexpr int kMostWithinWarp = 4;
// Lanes whose packets fill one 128-byte line.
constexpr int kLineLanes = 8;
// Threads per SM in kernels with sums over rows, which use up to 128 registers.
constexpr int kAccumulateThreads = 512;
// Rows of partial sums that are still quick to add.
constexpr int kMostPartialRows = 2048;
// Vectors per thread of a block that is alone with its row.
constexpr int kMostAlone = 4;
// Vectors per thread whose sums over rows also fit in registers.
constexpr int kMostAccumulated = 4;
// A block for few rows, on an H200 in bf16 (256 to 16384 columns): with fewer threads its sums over
// rows take longer than its row, with more too few blocks fit on an SM. Up to this many rows per
// thread that sums, one launch is faster than two kernels at every width.
constexpr int kLeastFewRowsThreads = 256;
constexpr int kMostFewRowsThreads = 512;
constexpr int kRowsPerSum = 8;
constexpr int kMostFewRows = kRowsPerSum * kMostFewRowsThreads / kSummedPackets;
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 30;
// Rows per SM up to which higher occupancy, with fewer registers per thread, saves 2 to 3 % of
// RMSNorm's time on an H200 even with four packets per thread; with many rows it costs up to 1 %.
constexpr int kFewRows = 16;

using device::divide_up;
using device::power_of_two_from;

bool is_aligned(const Matrix& shape) {
    return std::int64_t{shape.columns} * bytes_of(shape.dtype) % kPacketBytes == 0;
}

// Packets that a row touches; cut at memory boundaries, it may touch one more than it fills.
std::int64_t packets_of(const Matrix& shape) {
    const std::int64_t bytes = std::int64_t{shape.columns} * bytes_of(shape.dtype);
    return divide_up(bytes, kPacketBytes) + (is_aligned(shape) ? 0 : 1);
}

// Too few rows to keep every SM busy if each thread holds `vectors`.
bool are_few(std::int64_t rows, std::int64_t packets, int vectors, const Machine& machine,
             int warps = kBusyWarps) {
    return rows * divide_up(packets, vectors) <
           std::int64_t{machine.multiprocessors} * warps * kWarp;
}

// The most vectors per thread with which the rows still keep every SM busy.
int vectors_for(std::int64_t rows, std::int64_t packets, const Machine& machine, int most) {
    int vectors = most;
    while (vectors > 1 && are_few(rows, packets, vectors, machine)) vectors /= 2;
    return vectors;
}

void cut_within_warp(Config& config, std::int64_t packets, int vectors) {
    const int fewest = std::min(kLineLanes, power_of_two_from(packets));
    const int wanted = power_of_two_from(divide_up(packets, vectors));
    config.threads_per_row = std::clamp(wanted, fewest, kWarp);
    config.vectors = power_of_two_from(divide_up(packets, config.threads_per_row));
}

void cut_over_blocks(Config& config, std::int64_t packets, int vectors, int most_vectors,
                     RowUse use) {
    while (vectors < most_vectors && packets > std::int64_t{vectors} * max_threads(vectors, use)) {
        vectors *= 2;
    }
    const std::int64_t per_block = std::int64_t{vectors} * max_threads(vectors, use);
    config.vectors = vectors;
    config.cluster_blocks =
        std::min(kMaxClusterBlocks, power_of_two_from(divide_up(packets, per_block)));
    const std::int64_t share = divide_up(packets, config.cluster_blocks);
    config.chunks = static_cast<int>(divide_up(share, per_block));
    const std::int64_t threads = divide_up(share, std::int64_t{config.chunks} * vectors);
    config.threads_per_row = static_cast<int>(divide_up(threads, kWarp)) * kWarp;
}

// Persistent blocks, fed through shared memory, with this many packets per thread; none if a row is
// too long. Chosen by measurement on an H200 in bf16, 2048 to 16384 columns.
std::optional<Config> staged_with(int vectors, const Config& config, const Matrix& shape,
                                  const Machine& machine, RowUse use) {
    const std::int64_t packets = packets_of(shape);
    if (packets > std::int64_t{vectors} * max_threads(vectors, use)) return std::nullopt;
    const std::int64_t rows_per_sm = shape.rows / machine.multiprocessors;
    Config staged = config;
    staged.vectors = vectors;
    staged.stages = 2;
    staged.threads_per_row =
        static_cast<int>(divide_up(divide_up(packets, vectors), kWarp)) * kWarp;
    const int threads =
        staged.threads_per_row <= kAccumulateThreads / 2 || use == RowUse::kAccumulateBoth
            ? kAccumulateThreads
            : kAccumulateThreads * 3 / 2;
    std::int64_t resident = std::max(1, threads / staged.threads_per_row);
    if (resident == 1 && vectors == 2 && rows_per_sm >= kManyRowsPerBlock) staged.stages = 3;
    const int bytes = shared_bytes(staged, shape, use);
    if (bytes > kMostStagedBytes) return std::nullopt;
    // Fewer threads with more registers each leave less to L1.
    const int capacity = vectors == 4 ? kMostSharedBytes : kSharedBytes;
    resident = std::min(resident, std::int64_t{capacity / (bytes + kOwnSharedBytes)});
    resident = std::min(std::max<std::int64_t>(resident, 1), rows_per_sm / kRowsPerBlock);
    staged.blocks = machine.multiprocessors * resident;
    if (resident < 1) return std::nullopt;
    return staged;
}

void stage(Config& config, const Matrix& shape, const Machine& machine, RowUse use) {
    if (!may_stage(use) || !config.aligned || config.rows_per_block > 1 ||
        config.cluster_blocks > 1) {
        return;
    }
    const std::optional<Config> two = staged_with(2, config, shape, machine, use);
    const std::optional<Config> four = staged_with(4, config, shape, machine, use);
    if (two) config = *two;
    // Half the threads per row: for rows that two packets per thread do not cover, and for many
    // rows of which an SM then has two at once instead of one.
    const auto rows_at_once = [&](const Config& staged) {
        return staged.blocks / machine.multiprocessors;
    };
    const bool more = two && four && shares_sums(4, use) && rows_at_once(*two) == 1 &&
                      rows_at_once(*four) > 1 && shape.rows >= kManyRowsPerBlock * four->blocks;
    if (four && (!two || more)) config = *four;
}

// Packets per thread that are best for rows of several warps on an H200 in bf16 (README.md).
int best_vectors(const Matrix& shape, std::int64_t packets, const Machine& machine, RowUse use) {
    constexpr int kUsual = 4;
    if (accumulates(use)) return vectors_for(shape.rows, packets, machine, kUsual);
    // Unless each row has its own block, there are no kernels with fewer.
    if (shape.rows > kMaxBlocks) return kUsual;
    // With few rows the time is that of one row: use more threads.
    const bool few = are_few(shape.rows, packets, kUsual, machine, kFewWarps);
    const bool long_rows = packets > kShortRows && packets <= kHalfBlock;
    switch (use) {
        case RowUse::kOneRow: {
            if (are_few(shape.rows, packets, 2, machine)) return 2;
            if (few && packets <= kShortRows) return 2;
            const bool fill =
                packets <= kHalfBlock && kLeanWarps % divide_up(packets, 2 * kWarp) == 0;
            return fill && !are_few(shape.rows, packets, 2, machine, kManyWarps) ? 2 : kUsual;
        }
        case RowUse::kExponentials:
            return long_rows || are_few(shape.rows, packets, kUsual, machine) ? 2 : kUsual;
        case RowUse::kInPlace:
            return are_few(shape.rows, packets, kUsual, machine, kFewInPlaceWarps) ||
                           (packets > kFullBlocks && packets <= kHalfBlock)
                       ? 2
                       : kUsual;
        case RowUse::kTwoRows:
            return packets <= kHalfBlock ? 2 : kUsual;
        case RowUse::kRowAlone:
            return packets <= kHalfBlock * 3 / 2 ? 2 : kUsual;
        default:
            return few ? 2 : kUsual;
    }
}

// A block per row, and one per kSummedPackets packets of columns.
Config cut_few_rows(const Matrix& shape) {
    // With few rows the time is that of one row: use many threads.
    const std::int64_t packets = packets_of(shape);
    Config config;
    config.vectors = packets <= kHalfBlock ? 2 : kMostAlone;
    config.alone = true;
    // Enough for the row, and for sums over a few rows per thread.
    const std::int64_t wanted = std::max(divide_up(packets, config.vectors),
                                         divide_up(shape.rows, kRowsPerSum) * kSummedPackets);
    const std::int64_t threads =
        std::clamp<std::int64_t>(wanted, kLeastFewRowsThreads, kMostFewRowsThreads);
    config.threads_per_row = static_cast<int>(divide_up(threads, kWarp)) * kWarp;
    config.blocks = shape.rows + divide_up(packets, kSummedPackets);
    return config;
}

// The next larger vector count that has a kernel.
int existing_vectors(const Config& config, RowUse use) {
    if (!config.aligned) return config.vectors <= 2 ? 2 : 8;
    if (config.alone || config.vectors == kMostVectors || accumulates(use)) return config.vectors;
    return 4;
}

}  // namespace

void check(const Matrix& shape) {
    device::require_activation(shape.dtype);
    device::require(shape.rows >= 1, "rows is " + std::to_string(shape.rows) + "; give at least 1");
    device::require(shape.columns >= 1 && shape.columns <= kMaxColumns,
                    "columns is " + std::to_string(shape.columns) + "; 1 to " +
                        std::to_string(kMaxColumns) + " are supported");
}

bool are_few_rows(const Matrix& shape) {
    return shape.rows <= kMostFewRows && is_aligned(shape) &&
           packets_of(shape) <= std::int64_t{kMostAlone} * kMostFewRowsThreads;
}

Config choose(const Matrix& shape, const Machine& machine, RowUse use) {
    check(shape);
    if (use == RowUse::kFewRows) {
        const Config config = cut_few_rows(shape);
        validate(config, shape, use);
        return config;
    }
    const std::int64_t packets = packets_of(shape);
    const int most = accumulates(use) ? kMostAccumulated : kMostVectors;
    Config config;
    config.aligned = is_aligned(shape) &&
                     (!accumulates(use) ||
                      packets <= std::int64_t{most} * max_threads(most, use) * kMaxClusterBlocks);
    if (packets <= std::int64_t{kWarp} * kMostWithinWarp) {
        const bool fixed = config.aligned && !accumulates(use);
        cut_within_warp(
            config, packets,
            fixed ? kMostWithinWarp : vectors_for(shape.rows, packets, machine, kMostWithinWarp));
        config.rows_per_block = kManyRowsThreads / config.threads_per_row;
    } else if (config.aligned) {
        cut_over_blocks(config, packets, best_vectors(shape, packets, machine, use), most, use);
    } else {
        const int unaligned = packets > std::int64_t{2} * max_threads(2, use) ? kMostVectors : 2;
        cut_over_blocks(config, packets, unaligned, kMostVectors, use);
    }
    config.alone = config.aligned && !accumulates(use) && config.rows_per_block == 1 &&
                   config.cluster_blocks == 1 && config.vectors <= kMostAlone &&
                   shape.rows <= kMaxBlocks;
    config.vectors = existing_vectors(config, use);
    const Lean when = lean(use, config.vectors);
    const bool few = shape.rows <= std::int64_t{kFewRows} * machine.multiprocessors;
    config.lean = config.alone && (when == Lean::kAlways || (when == Lean::kFewRows && few));
    const std::int64_t blocks = divide_up(shape.rows, config.rows_per_block);
    const std::int64_t most_blocks = kMaxBlocks / config.cluster_blocks;
    config.blocks = std::min(blocks, most_blocks) * config.cluster_blocks;
    if (accumulates(use) && config.aligned) {
        // Every block leaves a row of partial sums: no more of them than run at once.
        const int threads = config.threads_per_row * config.rows_per_block;
        const std::int64_t resident = std::max<std::int64_t>(
            1, std::int64_t{machine.multiprocessors} * std::max(1, kAccumulateThreads / threads) /
                   config.cluster_blocks);
        const std::int64_t summed = kMostPartialRows;
        config.blocks = std::min({blocks, resident, summed}) * config.cluster_blocks;
    }
    stage(config, shape, machine, use);
    validate(config, shape, use);
    return config;
}

void validate(const Config& config, const Matrix& shape, RowUse use) {
    const auto require = [](bool holds, const std::string& what) {
        device::require(holds, "config: " + what);
    };
    const int vectors = config.vectors;
    const int threads = config.threads_per_row;
    require(vectors == 1 || vectors == 2 || vectors == 4 || vectors == 8,
            "vectors is " + std::to_string(vectors) + "; use 1, 2, 4 or 8");
    require(!config.aligned || is_aligned(shape), "aligned, but rows are not whole packets");
    require(vectors == existing_vectors(config, use) || config.stages > 0,
            "no kernel with " + std::to_string(vectors) + " vectors");
    require(!config.alone ||
                (config.aligned && config.rows_per_block == 1 && config.stages == 0 &&
                 config.cluster_blocks == 1 && config.chunks == 1 &&
                 (config.blocks == shape.rows || use == RowUse::kFewRows) && vectors >= 2 &&
                 vectors <= kMostAlone && threads >= kWarp && !accumulates(use)),
            "alone, but blocks share rows or have several");
    const Lean when = config.alone ? lean(use, vectors) : Lean::kNever;
    require(when == Lean::kFewRows || config.lean == (when == Lean::kAlways),
            config.lean ? "no lean kernel" : "only a lean kernel");
    require(threads >= 1 && (threads % kWarp == 0 ||
                             (threads < kWarp && power_of_two_from(threads) == threads)),
            "threads_per_row is " + std::to_string(threads));
    require(config.rows_per_block >= 1 && (config.rows_per_block == 1 || threads <= kWarp),
            "rows_per_block above 1 needs rows within a warp");
    const int block = threads * config.rows_per_block;
    require(block <= max_threads(vectors, use), "block of " + std::to_string(block) + " threads");
    require(block % kWarp == 0,
            "block of " + std::to_string(block) + " threads is not whole warps");
    require(config.cluster_blocks >= 1 && config.cluster_blocks <= kMaxClusterBlocks &&
                power_of_two_from(config.cluster_blocks) == config.cluster_blocks,
            "cluster_blocks is " + std::to_string(config.cluster_blocks));
    require(config.cluster_blocks == 1 || threads >= kWarp, "a cluster needs whole warps");
    require(config.chunks == 1 || (config.chunks > 1 && vectors == kMostVectors),
            "chunks is " + std::to_string(config.chunks));
    require(config.stages >= 0 && config.stages <= kMostStages,
            "stages is " + std::to_string(config.stages));
    if (config.stages > 0) {
        require(may_stage(use) && may_stage(vectors), "no kernel with stages");
        require(config.aligned && config.rows_per_block == 1 && config.cluster_blocks == 1,
                "stages need one aligned row per block");
        require(config.chunks == 1, "stages need a single chunk");
        const int bytes = shared_bytes(config, shape, use);
        require(bytes <= kMostStagedBytes, std::to_string(bytes) + " bytes of shared memory");
    }
    require(config.blocks >= 1 && config.blocks <= kMaxBlocks &&
                config.blocks % config.cluster_blocks == 0,
            "blocks is " + std::to_string(config.blocks));
    require(std::int64_t{vectors} * threads * config.cluster_blocks * config.chunks >=
                packets_of(shape) - (config.aligned == is_aligned(shape) ? 0 : 1),
            "threads do not cover the row");
}

std::string describe(const Config& config) {
    return (config.lean      ? "l"
            : config.alone   ? "a"
            : config.aligned ? "v"
                             : "u") +
           std::to_string(config.vectors) + " t" + std::to_string(config.threads_per_row) + " r" +
           std::to_string(config.rows_per_block) + " c" + std::to_string(config.cluster_blocks) +
           " k" + std::to_string(config.chunks) + " s" + std::to_string(config.stages) + " b" +
           std::to_string(config.blocks);
}

}  // namespace norms
