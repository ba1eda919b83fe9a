// How a grid is cut for rows of a given shape: a pure function, tested without a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "Kernels/device/dtype.h"
#include "Kernels/device/integers.h"
#include "Kernels/device/machine.h"

namespace norms {

// Half as many again as the widest vocabulary that we know (Gemma 3's).
constexpr int kMaxColumns = 393216;
constexpr int kWarp = 32;
constexpr int kPacketBytes = 16;
using device::kMaxClusterBlocks;
using device::kPortableClusterBlocks;
constexpr int kMostVectors = 8;
constexpr int kMostStages = 8;
// Shared memory for rows that a block may request: sm_90a and sm_100a allow 227 KiB, and it needs
// some of that itself.
constexpr int kMostStagedBytes = 224 * 1024;
// The most that blocks on one SM have together, and what each needs of it besides rows: reductions,
// barriers, the system's reserve.
constexpr int kMostSharedBytes = 227 * 1024;
constexpr int kOwnSharedBytes = 1408 + 1024;
static_assert(kMaxColumns * sizeof(float) <= kPortableClusterBlocks * kMostStagedBytes,
              "a cluster must be able to hold a row");

// Columns of sums, so that those of a thread are whole packets.
constexpr int padded(int columns) { return (columns + 7) / 8 * 8; }

struct Matrix {
    std::int64_t rows;
    int columns;
    device::Dtype dtype;
};

// Packets that a row fills.
constexpr std::int64_t own_packets(const Matrix& shape) {
    return device::divide_up(std::int64_t{shape.columns} * bytes_of(shape.dtype), kPacketBytes);
}

struct Machine {
    int multiprocessors;
    // Clusters of kMaxClusterBlocks with an SM for each block that run at once: none where clusters
    // are not that large.
    int largest_clusters = 0;

    // Clusters that surely run at once if an SM holds so many of their blocks.
    std::int64_t clusters_at_once(int blocks, std::int64_t resident = 1) const;
};

// What an op's kernel does with a row, as far as the cut depends on it.
enum class RowUse {
    // One row in registers: rmsnorm forward.
    kOneRow,
    // The same with two column vectors: layernorm forward.
    kCentredRow,
    // The same with no column vector: cross-entropy backward.
    kRowAlone,
    // The same with two exponentials per element: softmax forward.
    kExponentials,
    // One row, read once: cross-entropy forward.
    kReadOnce,
    // Two rows in registers: softmax backward.
    kTwoRows,
    // Two rows in registers, both written back: fused add.
    kInPlace,
    // Two rows, and sums over rows that stay in registers until the block ends: the weight's
    // gradient. If they cannot (a thread's columns change from row to row, or are too many), they
    // take a separate pass: see keeps_columns().
    kAccumulate,
    // The same with the bias's gradient too.
    kAccumulateBoth,
    // The same two for few rows: blocks of rows, and besides them blocks of columns.
    kFewRows,
};

// Threads of a block that holds several rows.
constexpr int kManyRowsThreads = 128;

struct Config {
    // 16-byte packets per thread: 1, 2, 4 or 8, if such a kernel exists (rows.cuh).
    int vectors = 1;
    // Rows start at 16-byte boundaries and are whole packets; a kernel that does not rely on it
    // serves any row.
    bool aligned = true;
    // Rows that are not are loaded in words of so many bytes, if not 0: 4 or 8.
    int word_bytes = 0;
    // Every block has exactly one whole row: the leanest kernel.
    bool alone = false;
    // Fewer registers for higher occupancy, if the op has such a kernel.
    bool lean = false;
    // Threads of one block that share a row: a power of two up to 32, or whole warps.
    int threads_per_row = 32;
    // Above 1 only if a row needs no more than one warp.
    int rows_per_block = 1;
    // Blocks that share a row: a cluster, if they meet.
    int cluster_blocks = 1;
    // Passes of a thread over its vectors for one row.
    int chunks = 1;
    // A row may take several chunks: it is read chunk by chunk, and once more for the output.
    bool streamed = false;
    // The same, with a cluster's shared memory holding its row until it is done.
    bool held = false;
    // Pipeline stages: rows that a block has in flight to shared memory; 0: rows go straight to
    // registers. Needs rows in a single chunk, one per block at a time.
    int stages = 0;
    // Blocks in the grid, a multiple of cluster_blocks; together they step over the rows.
    std::int64_t blocks = 1;

    // Whether a thread has the same columns in every row.
    bool keeps_columns() const { return aligned || stages > 0; }
    // Rows that the grid works on at once.
    std::int64_t teams() const { return blocks / cluster_blocks * rows_per_block; }
    // Rows of partial sums that kernels with sums over rows leave: one for all teams of a block.
    std::int64_t partial_rows() const { return blocks / cluster_blocks; }
};

constexpr bool accumulates(RowUse use) {
    return use == RowUse::kAccumulate || use == RowUse::kAccumulateBoth;
}

// Whether blocks that share a row meet in a reduction; otherwise there may be more of them.
constexpr bool meets(RowUse use) { return use != RowUse::kRowAlone; }

constexpr int most_blocks_per_row(RowUse use) { return meets(use) ? kMaxClusterBlocks : 64; }
// The same for rows of any number.
constexpr int portable_blocks_per_row(RowUse use) {
    return meets(use) ? kPortableClusterBlocks : most_blocks_per_row(use);
}

// Packets per thread of blocks that stream a row.
constexpr int streamed_vectors(bool aligned) { return aligned ? 4 : 2; }

// Ops with kernels for rows of whole words.
constexpr bool may_take_words(RowUse use) {
    return use == RowUse::kOneRow || use == RowUse::kCentredRow || use == RowUse::kInPlace ||
           use == RowUse::kReadOnce || use == RowUse::kExponentials;
}
// Packets per thread in words, at most: with a bias or a second row beside the row, half as many.
constexpr int most_words(RowUse use) {
    return use == RowUse::kCentredRow || use == RowUse::kInPlace ? 2 : 4;
}

// Ops whose clusters can hold a long row.
constexpr bool may_hold(RowUse use) { return use == RowUse::kExponentials; }
constexpr int kMostHeldChunks = 32;

// Ops whose persistent blocks walk many rows, prefetched through shared memory. Others are slower
// that way (README.md).
constexpr bool may_stage(RowUse use) { return accumulates(use); }

// Packets per thread in kernels with staged rows: two, or four for rows that would not fit a block.
constexpr bool may_stage(int vectors) { return vectors == 2 || vectors == 4; }

// Bytes of a staged row: at any address it may touch one packet more than it fills.
constexpr int slot_bytes(int row_bytes) {
    if (row_bytes % kPacketBytes == 0) return row_bytes;
    return (row_bytes / kPacketBytes + 2) * kPacketBytes;
}

// Bytes of all tensors' rows that one step of a staged kernel reads.
constexpr int staged_bytes(const Matrix& shape) {
    return 2 * slot_bytes(shape.columns * bytes_of(shape.dtype));
}

// The columns of a row that each of a cluster's blocks stages.
constexpr int share_of(int columns, int blocks, int each) {
    const int packets = (columns + each - 1) / each;
    return blocks == 1 ? columns : (packets + blocks - 1) / blocks * each;
}
constexpr Matrix share_of(const Matrix& shape, int blocks) {
    const int each = kPacketBytes / bytes_of(shape.dtype);
    return {shape.rows, share_of(shape.columns, blocks, each), shape.dtype};
}

// Whether a staged kernel keeps the bias's sums in shared memory: beside four packets per thread,
// registers hold only the weight's.
constexpr bool shares_sums(int vectors, RowUse use) {
    return vectors == 4 && use == RowUse::kAccumulateBoth;
}

// Bytes of what is kept beside them: the weight, which is fp32 or narrower, and those sums.
constexpr int kept_bytes(const Matrix& shape, int vectors, RowUse use) {
    const int kept = accumulates(use) ? 1 + shares_sums(vectors, use) : 0;
    return kept * padded(shape.columns) * static_cast<int>(sizeof(float));
}

// The most packets per thread of a block that is alone with its row.
constexpr int most_alone(RowUse use) {
    return use == RowUse::kOneRow || use == RowUse::kCentredRow ? 8 : 4;
}

// Whether that row stays in shared memory until it is written: with a weight, or a bias too, to
// read besides, registers would limit occupancy.
constexpr bool parks(RowUse use, int vectors) {
    return vectors > 4 || (vectors == 4 && use == RowUse::kCentredRow);
}

// When blocks that are alone with a row use a kernel with fewer registers.
enum class Lean { kNever, kFewRows, kAlways };

constexpr Lean lean(RowUse use, int vectors) {
    if (use == RowUse::kOneRow && vectors <= 4) {
        return vectors == 2 ? Lean::kAlways : Lean::kFewRows;
    }
    // 2 % for many rows of 4096 on an H200.
    return use == RowUse::kInPlace && vectors == 4 ? Lean::kAlways : Lean::kNever;
}

// Dynamic shared memory of a block.
constexpr int shared_bytes(const Config& config, const Matrix& shape, RowUse use) {
    if (config.alone && parks(use, config.vectors)) {
        return config.vectors * config.threads_per_row * kPacketBytes;
    }
    if (config.held) {
        return config.chunks * config.vectors * config.threads_per_row * kPacketBytes;
    }
    if (config.stages == 0) return 0;
    const Matrix own = share_of(shape, config.cluster_blocks);
    return config.stages * staged_bytes(own) + kept_bytes(own, config.vectors, use);
}

// The largest block that an op's kernels with this many vectors are compiled for.
constexpr int max_threads(int vectors, RowUse use = RowUse::kOneRow) {
    return vectors >= 4 || accumulates(use) ? 512 : 1024;
}
// The same for rows that are not aligned.
constexpr int kMaxUnalignedThreads = 512;

// Blocks of that size that must fit on an SM at once: this caps a thread at 64 registers, so that
// half of an SM's threads have their loads in flight. A row that is read once needs no more than
// 40, and the extra threads then hide the latency of its exponentials.
constexpr int min_blocks(int vectors, RowUse use = RowUse::kOneRow) {
    if (use == RowUse::kReadOnce && vectors == 4) return 3;
    return 1024 / max_threads(vectors);
}
// The same for rows that are not aligned: with one tensor and at most a weight, streamed, a thread
// gets by with 40 registers.
constexpr int min_unaligned_blocks(bool streamed, RowUse use) {
    return streamed && use != RowUse::kCentredRow && use != RowUse::kInPlace ? 3 : 2;
}

// Throws std::invalid_argument for a shape or type that no kernel supports.
void check(const Matrix& shape);

// Packets of columns that a block sums over all rows: one 128-byte line per row.
constexpr int kSummedPackets = 8;
// Rows whose blocks run at once together with those of all columns.
constexpr int kResidentRows = 192;

// Whether reading everything twice takes less time than a second kernel, for the backward pass of a
// norm.
bool are_few_rows(const Matrix& shape);

// Throws as check() does. `in_place`: the output replaces an input, so a row must not be read with
// packets that it shares with another.
Config choose(const Matrix& shape, const Machine& machine, RowUse use, bool in_place = false);

// Throws std::invalid_argument, naming the field, if `config` cannot serve `shape`.
void validate(const Config& config, const Matrix& shape, RowUse use);

// `v4 t128 r1 c1 k1 s2 b4096`, for tables of a tuning run.
std::string describe(const Config& config);

}  // namespace norms
