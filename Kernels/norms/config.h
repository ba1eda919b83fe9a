// How a grid is cut for rows of a given shape: a pure function of values, tested without a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace norms {

constexpr int kMaxColumns = 262144;
constexpr int kPacketBytes = 16;
constexpr int kMaxClusterBlocks = 8;
constexpr int kMostVectors = 8;

struct Shape {
    std::int64_t rows;
    int columns;
    int element_bytes;
};

struct Machine {
    int multiprocessors;
};

// What an op's kernel does with a row, as far as the cut depends on it.
enum class RowUse {
    // One row in registers: rmsnorm, softmax and cross-entropy forward.
    kOneRow,
    // One row in registers, reduced twice: layernorm forward.
    kReducedTwice,
    // Two rows in registers: fused add, softmax backward.
    kTwoRows,
    // Two rows, and sums over rows that stay in registers until the block ends: weight gradients.
    // Where that cannot be (a thread's columns change from row to row, or are too many), the config
    // is not `aligned`, and the sums take a pass of their own.
    kAccumulate,
};

struct Config {
    // Packets of 16 bytes that a thread holds at once: 1, 2, 4 or 8 (2 or 8 when not aligned).
    int vectors = 1;
    // Rows start at 16-byte boundaries and are whole packets; a kernel that does not rely on it
    // serves any row.
    bool aligned = true;
    // Threads of one block that share a row: a power of two up to 32, or whole warps.
    int threads_per_row = 32;
    // Above 1 only where a row needs no more than one warp.
    int rows_per_block = 1;
    // Blocks that share a row.
    int cluster_blocks = 1;
    // Times a thread goes over its vectors for one row; above 1 the row is read more than once, and
    // vectors must be kMostVectors.
    int chunks = 1;
    // Blocks of the grid, a multiple of cluster_blocks; they step over the rows together.
    std::int64_t blocks = 1;

    // Rows that the grid works on at once.
    std::int64_t teams() const { return blocks / cluster_blocks * rows_per_block; }
};

// The largest block that an op's kernels with so many vectors are compiled for.
constexpr int max_threads(int vectors, RowUse use = RowUse::kOneRow) {
    return vectors >= 4 || use == RowUse::kAccumulate ? 512 : 1024;
}

// Blocks of that size that must fit a multiprocessor at once. Up to 4 vectors this caps a thread at
// 64 registers, so that half of a multiprocessor's threads have their loads in flight; with more to
// hold, a thread gets up to 128.
constexpr int min_blocks(int vectors) {
    return vectors >= kMostVectors ? 1 : 1024 / max_threads(vectors);
}

// Throws std::invalid_argument for a shape that no config serves.
Config choose(const Shape& shape, const Machine& machine, RowUse use);

// Throws std::invalid_argument, naming the field, where `config` cannot serve `shape`.
void validate(const Config& config, const Shape& shape, RowUse use);

// `v4 t128 r1 c1 k1 b4096`, for tables of a tuning run.
std::string describe(const Config& config);

}  // namespace norms
