// How rows are cut for kernels that reduce whole rows: plain values, chosen without a GPU.
#pragma once

#include <cstdint>

namespace quantize {

struct RowConfig {
    int threads_per_row;
    // Above 1 only if a row's threads are part of a warp.
    int rows_per_block;
    // 16-byte packets that a thread holds at once: 1, 2, 4 or 8.
    int vectors;
    // Above 1 a row does not fit in registers and is read twice.
    int chunks;
};

constexpr int kRowMaxThreads = 1024;
constexpr int kRowMaxVectors = 8;

// `packets` is in 16-byte packets per row.
RowConfig choose_row(std::int64_t packets);

// The same with whole warps per row, so that neighbouring lanes have neighbouring packets.
RowConfig choose_warps(std::int64_t packets);

}  // namespace quantize
