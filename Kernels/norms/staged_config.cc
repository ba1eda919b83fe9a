#include "Kernels/norms/staged_config.h"

#include <algorithm>
#include <optional>

#include "Kernels/device/integers.h"

namespace norms {
namespace {

using device::divide_up;

// Shared memory per SM for staged rows (sm_90a and sm_100a have 228 KiB; the rest is L1).
constexpr int kSharedBytes = 212 * 1024;
// Blocks per SM with staged rows: for short rows at any address, which else would have more.
constexpr int kMostStagedBlocks = 8;
// Bytes of rows that an SM reads while a block gets from one row to the next: blocks that stage as
// many keep it busy. More of them overlap better, but each leaves a row of partial sums.
constexpr int kStepBytes = 12 * 1024;
// Bytes of rows that a block alone on its SM keeps under way beside the row that it works on.
constexpr int kAheadBytes = 48 * 1024;
// Rows per block and stage for the ring to be worth filling, and per block for more blocks than
// keep an SM busy.
constexpr int kRowsPerBlock = 3;
constexpr int kManyRowsPerBlock = 12;
// Threads per SM in kernels with sums over rows, which use up to 128 registers.
constexpr int kAccumulateThreads = 512;
// Of which those with four packets per thread need no more than these; beyond, they take longer.
constexpr int kWideThreads = 256;
// Threads of a block that works on one row while the next one arrives; of more, clusters are
// faster.
constexpr int kMostWaitingThreads = 448;
// Rows of partial sums that are still quick to add.
constexpr int kMostPartialRows = 2048;

// Persistent blocks, or clusters whose blocks have a share of each row, fed through shared memory,
// with this many packets per thread; none if a row is too long. Chosen by measurement on an H200 in
// bf16, 1024 to 32768 columns.
std::optional<Config> staged_with(int vectors, int cluster_blocks, const Config& config,
                                  const Matrix& shape, const Machine& machine, RowUse use) {
    const Matrix own = share_of(shape, cluster_blocks);
    const std::int64_t packets = own_packets(own);
    if (packets > std::int64_t{vectors} * max_threads(vectors, use)) return std::nullopt;
    const std::int64_t clusters = machine.clusters_at_once(cluster_blocks);
    const std::int64_t rows_per_sm = shape.rows / clusters;
    Config staged;
    staged.aligned = config.aligned;
    staged.vectors = vectors;
    staged.stages = 2;
    staged.cluster_blocks = cluster_blocks;
    staged.threads_per_row =
        static_cast<int>(divide_up(divide_up(packets, vectors), kWarp)) * kWarp;
    const int threads =
        staged.threads_per_row <= kAccumulateThreads / 2 || use == RowUse::kAccumulateBoth
            ? kAccumulateThreads
            : kAccumulateThreads * 3 / 2;
    const int bytes = shared_bytes(staged, shape, use);
    if (bytes > kMostStagedBytes) return std::nullopt;
    // Fewer threads with more registers each leave less to L1.
    const int capacity = vectors == 4 ? kMostSharedBytes : kSharedBytes;
    std::int64_t resident = std::clamp(threads / staged.threads_per_row, 1, kMostStagedBlocks);
    resident = std::min(resident, std::int64_t{capacity / (bytes + kOwnSharedBytes)});
    // Rows at any address take longer, so that a block alone would not keep up.
    const std::int64_t enough =
        config.aligned ? divide_up(kStepBytes, staged_bytes(own)) : kMostStagedBlocks;
    resident = std::min(resident, std::max(rows_per_sm / kManyRowsPerBlock, enough));
    if (vectors == 4) {
        resident =
            std::min<std::int64_t>(resident, divide_up(kWideThreads, staged.threads_per_row));
    }
    if (cluster_blocks > 1 && vectors == 4) resident = 1;
    resident = std::min(std::max<std::int64_t>(resident, 1), rows_per_sm / kRowsPerBlock);
    if (resident < 1) return std::nullopt;
    staged.blocks = machine.clusters_at_once(cluster_blocks, resident) * cluster_blocks;
    if (resident == 1) {
        const std::int64_t wanted = std::min<std::int64_t>(
            1 + divide_up(kAheadBytes, staged_bytes(own)), rows_per_sm / kRowsPerBlock);
        const int fit = (kMostStagedBytes - kept_bytes(own, vectors, use)) / staged_bytes(own);
        staged.stages =
            static_cast<int>(std::clamp<std::int64_t>(wanted, 2, std::min(fit, kMostStages)));
    }
    return staged;
}

// Whether a block has rows under way beside the one that it works on, or fewer threads than the
// most to wait for each other.
bool keeps_going(const Config& staged) {
    return staged.stages > 2 || staged.threads_per_row <= kMostWaitingThreads;
}

// Whether it leaves no more than a quarter of the SMs idle.
bool fills(const Config& staged, const Machine& machine) {
    return 4 * staged.blocks >= 3 * std::int64_t{machine.multiprocessors};
}

// By clusters whose blocks have a share of each row.
std::optional<Config> staged_by_clusters(const Config& config, const Matrix& shape,
                                         const Machine& machine, RowUse use) {
    std::optional<Config> best;
    if (shares_sums(4, use)) {
        // Sums in shared memory take longer than any cut with two packets per thread: the one that
        // has most of all rows at work.
        const auto at_work = [&](const Config& staged) {
            return staged.blocks * own_packets(share_of(shape, staged.cluster_blocks));
        };
        for (int blocks = 2; blocks <= kPortableClusterBlocks; blocks *= 2) {
            const auto two = staged_with(2, blocks, config, shape, machine, use);
            if (!two || !fills(*two, machine)) continue;
            if (!best || at_work(*two) > at_work(*best)) best = two;
        }
        if (best) return best;
    }
    for (int blocks = 2; blocks <= kPortableClusterBlocks; blocks *= 2) {
        const auto four = staged_with(4, blocks, config, shape, machine, use);
        if (four && (!best || (!keeps_going(*best) && fills(*four, machine)))) best = four;
    }
    return best;
}

}  // namespace

void bound_partial_rows(Config& config, const Machine& machine) {
    const int threads = config.threads_per_row * config.rows_per_block;
    const std::int64_t resident =
        std::max<std::int64_t>(1, machine.clusters_at_once(config.cluster_blocks) *
                                      std::max(1, kAccumulateThreads / threads));
    const std::int64_t summed = kMostPartialRows;
    config.blocks = std::min({config.partial_rows(), resident, summed}) * config.cluster_blocks;
}

void stage(Config& config, const Matrix& shape, const Machine& machine, RowUse use) {
    // Several rows per block keep their sums without a ring, and leave fewer of them: in a ring
    // such rows must be long enough for two packets per lane of two warps, and many. Of less than a
    // packet per lane too little is left for a warp to do.
    const std::int64_t packets = own_packets(shape);
    const bool many = shape.rows >= std::int64_t{machine.multiprocessors} * kMostStagedBlocks * 4 *
                                        kManyRowsPerBlock;
    const bool several = config.aligned && config.rows_per_block > 1;
    if (packets <= kWarp || (several && (packets <= 2 * kWarp || !many))) return;
    const auto with = [&](int vectors, int blocks) {
        return staged_with(vectors, blocks, config, shape, machine, use);
    };
    const std::optional<Config> two = with(2, 1);
    const std::optional<Config> four = with(4, 1);
    // Half the threads per row: for rows that two packets per thread do not cover, and for many
    // rows of which an SM then has more at once.
    const bool more = two && four && shares_sums(4, use) && four->blocks > two->blocks &&
                      shape.rows >= kManyRowsPerBlock * four->blocks;
    if (four && (!two || more)) {
        config = *four;
    } else if (two) {
        config = *two;
    }
    const std::optional<Config>& alone = two && !more ? two : four;
    const bool many_rows = shape.rows >= std::int64_t{machine.multiprocessors} * kRowsPerBlock;
    if ((alone && keeps_going(*alone)) || !config.aligned) return;
    if (!alone && config.cluster_blocks == 1 && !many_rows) return;
    if (const std::optional<Config> shared = staged_by_clusters(config, shape, machine, use)) {
        config = *shared;
    }
}

}  // namespace norms
