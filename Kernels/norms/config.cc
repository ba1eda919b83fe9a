#include "Kernels/norms/config.h"

#include <algorithm>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"
#include "Kernels/norms/row_config.h"
#include "Kernels/norms/staged_config.h"

namespace norms {
namespace {

// Warps per SM that cover memory latency with their loads, and that fit.
constexpr int kBusyWarps = 32;
constexpr int kFewWarps = 64;
// RMSNorm with two packets per thread: warps that an SM holds, and the number from which blocks
// that fill it with them are best.
constexpr int kLeanWarps = 48;
constexpr int kManyWarps = 16 * kLeanWarps;
constexpr int kManyShortWarps = 5 * kLeanWarps;  // with short rows
// The same for fused add: warps up to which two packets per thread are best, and packets of a row
// whose blocks still fill an SM with four.
constexpr int kFewInPlaceWarps = 224;
constexpr int kFullBlocks = 896;
// Bytes of a row per block that holds a share of it, so that three blocks fit on an SM, and threads
// of all such blocks there.
constexpr int kHeldBytes = 72 * 1024;
constexpr int kHeldThreads = 1024;
// Packets that as many threads keep in registers. Clusters that keep their rows so start sooner but
// overlap less: they are faster until, over a few waves, an SM has left so many packets idle. With
// fewer blocks than these per SM, none computes while others load.
constexpr int kKeptPackets = streamed_vectors(true) * kHeldThreads;
constexpr int kMostIdlePackets = kKeptPackets * 7 / 4;
constexpr int kMostKeptWaves = 8;
constexpr int kLeastKeptBlocks = 3;
// Blocks per SM that few rows are spread over, and the fewest threads of one.
constexpr int kStreamedBlocks = 2;
constexpr int kLeastStreamedThreads = 128;
// Bytes of all rows at once that stay in L2 until they are read again.
constexpr std::int64_t kCachedBytes = std::int64_t{32} << 20;
// Bytes of a row up to which unaligned blocks of this size are best; beyond, so many rows at once
// would not stay in L2 until they are read again.
constexpr int kShortStreamBytes = 40 * 1024;
constexpr int kShortStreamThreads = 256;
// Threads of a block of a cluster that keeps two rows, neither of which it writes.
constexpr int kKeepingThreads = 256;
// Rows per SM up to which a block per row is faster than a warp per row, whatever its length. Twice
// as many if it also reads a second row or writes.
constexpr int kApartRows = 8;
// Row packets up to which four vectors per thread are best even beside other work, and the most
// that half of the largest block holds with two each.
constexpr int kShortRows = 768;
constexpr int kHalfBlock = 1024;
// Most vectors per lane if a row is held by one warp or less.
constexpr int kMostWithinWarp = 4;
// Lanes whose packets fill one 128-byte line.
constexpr int kLineLanes = 8;
// Threads of unaligned blocks that an SM holds at least.
constexpr int kUnalignedThreads = 1024;
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
// Rows per SM up to which higher occupancy, with fewer registers per thread, saves 2 to 3 % of
// RMSNorm's time on an H200 even with four packets per thread; with many rows it costs up to 1 %.
constexpr int kFewRows = 16;

using device::divide_up;
using device::power_of_two_from;

// Whole warps whose threads have `vectors` packets each.
std::int64_t threads_for(std::int64_t packets, int vectors) {
    return divide_up(divide_up(packets, vectors), kWarp) * kWarp;
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

// The largest power of two up to `value`.
int power_of_two_up_to(std::int64_t value) { return power_of_two_from(value / 2 + 1); }

// Passes over `share` packets per block, of at most so many threads, and how many it needs then.
void cut_share(Config& config, std::int64_t share, std::int64_t most_threads) {
    config.chunks = static_cast<int>(divide_up(share, config.vectors * most_threads));
    const std::int64_t threads = divide_up(share, std::int64_t{config.chunks} * config.vectors);
    config.threads_per_row = static_cast<int>(divide_up(threads, kWarp)) * kWarp;
}

void cut_over_blocks(Config& config, std::int64_t packets, int vectors, int most_vectors,
                     RowUse use) {
    while (vectors < most_vectors && packets > std::int64_t{vectors} * max_threads(vectors, use)) {
        vectors *= 2;
    }
    const std::int64_t per_block = std::int64_t{vectors} * max_threads(vectors, use);
    config.vectors = vectors;
    config.cluster_blocks =
        std::min(portable_blocks_per_row(use), power_of_two_from(divide_up(packets, per_block)));
    const std::int64_t share = divide_up(packets, config.cluster_blocks);
    cut_share(config, share, per_block / vectors);
}

// Blocks of the largest clusters that run at once for all rows, if rows are few.
int most_cluster_blocks(const Matrix& shape, const Machine& machine) {
    const std::int64_t most = kStreamedBlocks * machine.clusters_at_once(kMaxClusterBlocks);
    return shape.rows <= most ? kMaxClusterBlocks : kPortableClusterBlocks;
}

// The most blocks of a cluster that shares a row and gives each enough of it.
int most_blocks_for(const Config& config, const Matrix& shape, const Machine& machine,
                    std::int64_t packets) {
    const std::int64_t fewest = std::int64_t{config.vectors} * kLeastStreamedThreads;
    return std::min(most_cluster_blocks(shape, machine),
                    power_of_two_up_to(divide_up(packets, fewest)));
}

// Blocks of a cluster that shares a row, if rows are few.
int blocks_for_few(const Config& config, const Matrix& shape, const Machine& machine,
                   std::int64_t packets) {
    const std::int64_t spread =
        std::int64_t{machine.multiprocessors} * kStreamedBlocks / shape.rows;
    return std::min(power_of_two_up_to(spread), most_blocks_for(config, shape, machine, packets));
}

// The same, or twice as many if SMs then share few rows more evenly.
int even_blocks(const Config& config, const Matrix& shape, const Machine& machine,
                std::int64_t packets) {
    const int blocks = blocks_for_few(config, shape, machine, packets);
    const std::int64_t all = shape.rows * blocks;
    const std::int64_t sms = machine.multiprocessors;
    const bool more = 2 * blocks <= most_blocks_for(config, shape, machine, packets) &&
                      all <= sms * kStreamedBlocks &&
                      divide_up(2 * all, sms) < 2 * divide_up(all, sms);
    return more ? 2 * blocks : blocks;
}

// Threads per SM of blocks that stream rows: what their registers allow.
int streaming_threads(bool aligned, RowUse use) {
    const int vectors = streamed_vectors(aligned);
    return aligned ? min_blocks(vectors, use) * max_threads(vectors, use)
                   : min_unaligned_blocks(true, use) * kMaxUnalignedThreads;
}

// Whether so many rows at once stay in L2 until they are read again, if they are.
bool fit_cache(std::int64_t rows, const Matrix& shape, RowUse use) {
    const int tensors = use == RowUse::kTwoRows || use == RowUse::kInPlace ? 2 : 1;
    const std::int64_t row_bytes = std::int64_t{tensors} * shape.columns * bytes_of(shape.dtype);
    return use == RowUse::kReadOnce || rows * row_bytes <= kCachedBytes;
}

// Blocks of a cluster, so that the rows that are streamed at once fit.
int blocks_for_cache(const Config& config, const Matrix& shape, const Machine& machine, RowUse use,
                     int threads) {
    const std::int64_t resident =
        std::int64_t{machine.multiprocessors} * (streaming_threads(config.aligned, use) / threads);
    int blocks = 1;
    while (blocks < kPortableClusterBlocks &&
           !fit_cache(std::min(shape.rows, resident / blocks), shape, use)) {
        blocks *= 2;
    }
    return blocks;
}

// Blocks of a cluster whose registers keep a row that would be expensive to read twice.
int blocks_to_keep(std::int64_t packets, RowUse use) {
    if (use != RowUse::kTwoRows && use != RowUse::kInPlace) return 1;
    const int threads = use == RowUse::kTwoRows ? kKeepingThreads : kMaxUnalignedThreads;
    const int blocks = power_of_two_from(divide_up(packets, streamed_vectors(true) * threads));
    return blocks <= kPortableClusterBlocks ? blocks : 1;
}

// The most threads of a block with which all blocks run at once, if a few of them would be left for
// a second wave.
int threads_for_one_wave(const Config& config, const Matrix& shape, const Machine& machine,
                         RowUse use) {
    const std::int64_t sms = machine.multiprocessors;
    const int most = streaming_threads(config.aligned, use);
    const std::int64_t blocks = shape.rows * config.cluster_blocks;
    const std::int64_t wave = sms * (most / config.threads_per_row);
    if (blocks <= wave || blocks >= 2 * wave || !fit_cache(shape.rows, shape, use)) {
        return config.threads_per_row;
    }
    return static_cast<int>(most / divide_up(blocks, sms)) / kWarp * kWarp;
}

// Blocks that walk a row in chunks. More of them per row where rows are few, or where they need not
// meet.
void stream(Config& config, const Matrix& shape, const Machine& machine, RowUse use) {
    const std::int64_t packets = packets_of(shape);
    // With an SM for every block, its time is that of its chunks.
    const bool few = shape.rows * kPortableClusterBlocks <= machine.multiprocessors;
    const bool brief = !config.aligned && !few &&
                       (packets * kPacketBytes <= kShortStreamBytes || use == RowUse::kReadOnce);
    const int threads = brief ? kShortStreamThreads : kMaxUnalignedThreads;
    config.streamed = true;
    config.vectors = streamed_vectors(config.aligned);
    if (meets(use)) {
        config.cluster_blocks = std::max({even_blocks(config, shape, machine, packets),
                                          blocks_for_cache(config, shape, machine, use, threads),
                                          config.aligned ? blocks_to_keep(packets, use) : 1});
    } else {
        config.cluster_blocks =
            std::min(portable_blocks_per_row(use),
                     power_of_two_from(divide_up(packets, config.vectors * threads)));
    }
    const std::int64_t share = divide_up(packets, config.cluster_blocks);
    cut_share(config, share, threads);
    // More chunks cost little where there are several; a row of one should stay in registers.
    if (meets(use) && config.chunks > 1) {
        cut_share(config, share, threads_for_one_wave(config, shape, machine, use));
    }
}

// A cluster whose registers keep the row, unless that leaves too much idle.
bool keep_in_registers(Config& config, const Matrix& shape, const Machine& machine) {
    const std::int64_t packets = own_packets(shape);
    Config shared = config;
    shared.vectors = streamed_vectors(true);
    shared.cluster_blocks = most_blocks_for(shared, shape, machine, packets);
    const std::int64_t each = divide_up(packets, shared.cluster_blocks);
    cut_share(shared, each, max_threads(shared.vectors));
    if (shared.chunks > 1) return false;
    const std::int64_t resident = kHeldThreads / shared.threads_per_row;
    const std::int64_t waves = divide_up(shape.rows * shared.cluster_blocks,
                                         std::int64_t{machine.multiprocessors} * resident);
    // One of an SM's blocks is always between its row and the next.
    const std::int64_t idle = waves * (kKeptPackets - (resident - 1) * each);
    if (resident < kLeastKeptBlocks || waves > kMostKeptWaves || idle >= kMostIdlePackets) {
        return false;
    }
    config = shared;
    return true;
}

// A cluster whose shared memory holds the row, each block a share that leaves room for other
// blocks: some load while others compute or store.
void hold(Config& config, const Matrix& shape) {
    const std::int64_t packets = own_packets(shape);
    config.held = true;
    config.vectors = streamed_vectors(config.aligned);
    config.cluster_blocks = std::min(
        kPortableClusterBlocks, power_of_two_from(divide_up(packets * kPacketBytes, kHeldBytes)));
    const std::int64_t share = divide_up(packets, config.cluster_blocks);
    const std::int64_t resident = kMostSharedBytes / (share * kPacketBytes + kOwnSharedBytes);
    // Whole warps, so that registers do not keep one of the blocks out.
    const std::int64_t threads = kHeldThreads / resident / kWarp * kWarp;
    cut_share(config, share, std::min<std::int64_t>(threads, max_threads(config.vectors)));
}

// Whether whole warps with two packets per thread have fewer lanes without any than with four.
bool leave_fewer_idle(std::int64_t packets) {
    return divide_up(packets, 2 * kWarp) < 2 * divide_up(packets, 4 * kWarp);
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
            const bool many = shape.rows > std::int64_t{kFewRows} * machine.multiprocessors &&
                              !are_few(shape.rows, packets, 2, machine,
                                       packets <= kShortRows ? kManyShortWarps : kManyWarps);
            return fill && many ? 2 : kUsual;
        }
        case RowUse::kExponentials:
            return long_rows || are_few(shape.rows, packets, kUsual, machine) ? 2 : kUsual;
        case RowUse::kInPlace:
            if (are_few(shape.rows, packets, kUsual, machine, kFewInPlaceWarps)) return 2;
            if (packets > kHalfBlock) return kUsual;
            return packets > kFullBlocks || leave_fewer_idle(packets) ? 2 : kUsual;
        case RowUse::kTwoRows:
            return packets <= kHalfBlock ? 2 : kUsual;
        case RowUse::kRowAlone:
            return packets <= kHalfBlock * 3 / 2 ? 2 : kUsual;
        default:
            return few ? 2 : kUsual;
    }
}

// Rows that a warp, or a part of one, holds.
void cut_many_rows(Config& config, std::int64_t packets, int vectors) {
    cut_within_warp(config, packets, vectors);
    config.rows_per_block = kManyRowsThreads / config.threads_per_row;
}

void cut_for_sums(Config& config, const Matrix& shape, const Machine& machine, RowUse use) {
    const std::int64_t packets = packets_of(shape);
    const std::int64_t most = std::int64_t{kMostAccumulated} * max_threads(kMostAccumulated, use);
    config.aligned = is_aligned(shape) && packets <= most * kPortableClusterBlocks;
    if (packets <= std::int64_t{kWarp} * kMostWithinWarp) {
        cut_many_rows(config, packets, vectors_for(shape.rows, packets, machine, kMostWithinWarp));
    } else if (config.aligned) {
        const int vectors = best_vectors(shape, packets, machine, use);
        cut_over_blocks(config, packets, vectors, kMostAccumulated, use);
    } else {
        const int vectors = packets > std::int64_t{2} * max_threads(2, use) ? kMostVectors : 2;
        cut_over_blocks(config, packets, vectors, kMostVectors, use);
    }
}

// Packets of a row up to which words of 4 bytes are faster than shifted packets, however many rows,
// where columns beside the row's need shifts, too: beyond, blocks of so many threads are too large
// to overlap.
constexpr std::int64_t kShortWords = 640;

// Whether a block of so many threads in words is faster than a stream of shifted packets, however
// many rows.
bool words_fit(std::int64_t packets, int vectors, int word_bytes, RowUse use) {
    const std::int64_t threads = threads_for(packets, vectors);
    if (threads > kMaxUnalignedThreads) return false;
    if (most_words(use) > 2) return true;
    if (word_bytes == 4) return packets <= kShortWords;
    // A bias, too, is worth shifting if the blocks leave too much of an SM empty.
    return use != RowUse::kCentredRow ||
           kUnalignedThreads / threads * threads >= kUnalignedThreads * 3 / 4;
}

// Rows that are not aligned, in words: in one block if they fit, because blocks take long to meet.
bool cut_into_words(Config& config, const Matrix& shape, const Machine& machine, RowUse use) {
    if (!may_take_words(use) || !is_words(shape, 4)) return false;
    const std::int64_t packets = own_packets(shape);
    const std::int64_t widest =
        std::int64_t{kMaxUnalignedThreads} * most_cluster_blocks(shape, machine);
    // With two packets per thread where all rows then run at once.
    constexpr int kFewest = 2;
    const std::int64_t at_once = kUnalignedThreads / threads_for(packets, kFewest);
    const bool few = shape.rows <= machine.multiprocessors * std::max<std::int64_t>(1, at_once);
    const int vectors = few && packets <= kFewest * widest ? kFewest : most_words(use);
    const std::int64_t most = std::int64_t{vectors} * kMaxUnalignedThreads;
    if (packets > vectors * widest) return false;
    const int word_bytes = is_words(shape, 8) ? 8 : 4;
    if (!words_fit(packets, vectors, word_bytes, use) &&
        !are_few(shape.rows, packets, vectors, machine)) {
        return false;
    }
    config.word_bytes = word_bytes;
    if (packets <= kWarp * vectors) {
        cut_many_rows(config, packets, vectors_for(shape.rows, packets, machine, vectors));
        return true;
    }
    config.vectors = vectors;
    if (packets > most) {
        config.cluster_blocks = std::max(power_of_two_from(divide_up(packets, most)),
                                         blocks_for_few(config, shape, machine, packets));
    }
    cut_share(config, divide_up(packets, config.cluster_blocks), kMaxUnalignedThreads);
    return true;
}

void cut(Config& config, const Matrix& shape, const Machine& machine, RowUse use) {
    const std::int64_t packets = packets_of(shape);
    const bool reads_once = use == RowUse::kOneRow || use == RowUse::kReadOnce;
    const bool few =
        shape.rows <= std::int64_t{machine.multiprocessors} * kApartRows * (reads_once ? 1 : 2);
    config.aligned = is_aligned(shape);
    if (!config.aligned) {
        const int vectors = streamed_vectors(false);
        if (cut_into_words(config, shape, machine, use)) return;
        if (packets <= kWarp * vectors) {
            cut_many_rows(config, packets, vectors_for(shape.rows, packets, machine, vectors));
        } else if (meets(use) && packets <= vectors * kMaxUnalignedThreads &&
                   are_few(shape.rows, packets, vectors, machine)) {
            config.vectors = vectors;
            cut_share(config, packets, kMaxUnalignedThreads);
        } else {
            stream(config, shape, machine, use);
        }
        return;
    }
    const bool short_row = packets <= kWarp * (use == RowUse::kReadOnce ? kMostWithinWarp : 2);
    if (short_row && !few) return cut_many_rows(config, packets, kMostWithinWarp);
    // More than four packets per thread take a row per SM at least; several blocks share fewer
    // rows.
    const int most = shape.rows >= machine.multiprocessors ? most_alone(use) : kMostAlone;
    config.alone = packets <= std::int64_t{most} * max_threads(most) && shape.rows <= kMaxBlocks;
    if (config.alone) {
        const int vectors = best_vectors(shape, packets, machine, use);
        return cut_over_blocks(config, packets, vectors, most, use);
    }
    if (may_hold(use) && shape.rows <= kMaxBlocks / kMaxClusterBlocks) {
        if (keep_in_registers(config, shape, machine)) return;
        hold(config, shape);
        if (2 * shape.rows * config.cluster_blocks >= machine.multiprocessors) return;
        config.held = false;
    }
    stream(config, shape, machine, use);
    // One chunk stays in registers, and what is loaded beside it need not wait.
    config.streamed = config.chunks > 1 || !meets(use);
}

// A block per row, and one per kSummedPackets packets of columns.
Config cut_few_rows(const Matrix& shape) {
    // With few rows the time is that of one row: use many threads.
    const std::int64_t packets = packets_of(shape);
    Config config;
    config.vectors = packets <= kHalfBlock ? 2 : kMostAlone;
    config.aligned = is_aligned(shape);
    config.alone = config.aligned;
    // Enough for the row, and for sums over a few rows per thread.
    const std::int64_t wanted = std::max(divide_up(packets, config.vectors),
                                         divide_up(shape.rows, kRowsPerSum) * kSummedPackets);
    const std::int64_t threads =
        std::clamp<std::int64_t>(wanted, kLeastFewRowsThreads, kMostFewRowsThreads);
    config.threads_per_row = static_cast<int>(divide_up(threads, kWarp)) * kWarp;
    config.blocks = shape.rows + divide_up(own_packets(shape), kSummedPackets);
    return config;
}

}  // namespace

// SMs come in pairs, and in up to eight groups that a cluster does not leave, so that large
// clusters leave SMs idle, or parts of them.
std::int64_t Machine::clusters_at_once(int blocks, std::int64_t resident) const {
    if (blocks > kPortableClusterBlocks) return largest_clusters * resident;
    constexpr int kGroups = 8;
    const std::int64_t room = multiprocessors * resident;
    const std::int64_t idle = std::int64_t{kGroups} * std::max(0, blocks - (resident > 1 ? 1 : 2));
    return std::max<std::int64_t>(1, (room - idle) / blocks);
}

void check(const Matrix& shape) {
    device::require_activation(shape.dtype);
    device::require(shape.rows >= 1, "rows is " + std::to_string(shape.rows) + "; give at least 1");
    device::require(shape.columns >= 1 && shape.columns <= kMaxColumns,
                    "columns is " + std::to_string(shape.columns) + "; 1 to " +
                        std::to_string(kMaxColumns) + " are supported");
}

bool are_few_rows(const Matrix& shape) {
    return shape.rows <= kMostFewRows &&
           packets_of(shape) <= std::int64_t{kMostAlone} * kMostFewRowsThreads;
}

Config choose(const Matrix& shape, const Machine& machine, RowUse use, bool in_place) {
    check(shape);
    if (use == RowUse::kFewRows) {
        const Config config = cut_few_rows(shape);
        validate(config, shape, use);
        return config;
    }
    Config config;
    if (accumulates(use)) {
        cut_for_sums(config, shape, machine, use);
    } else {
        cut(config, shape, machine, use);
    }
    config.vectors = existing_vectors(config, use);
    const Lean when = lean(use, config.vectors);
    const bool few = shape.rows <= std::int64_t{kFewRows} * machine.multiprocessors;
    config.lean = config.alone && (when == Lean::kAlways || (when == Lean::kFewRows && few));
    const std::int64_t blocks = divide_up(shape.rows, config.rows_per_block);
    const std::int64_t most_blocks = kMaxBlocks / config.cluster_blocks;
    config.blocks = std::min(blocks, most_blocks) * config.cluster_blocks;
    if (accumulates(use)) {
        if (config.aligned) bound_partial_rows(config, machine);
        if (config.aligned || !in_place) stage(config, shape, machine, use);
    }
    validate(config, shape, use);
    return config;
}

}  // namespace norms
