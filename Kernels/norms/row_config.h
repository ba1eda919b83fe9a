// What the choice of a cut and its validation share.
#pragma once

#include <cstdint>

#include "Kernels/norms/config.h"

namespace norms {

constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 30;

inline bool is_aligned(const Matrix& shape) {
    return std::int64_t{shape.columns} * bytes_of(shape.dtype) % kPacketBytes == 0;
}

inline bool is_words(const Matrix& shape, int word_bytes) {
    return std::int64_t{shape.columns} * bytes_of(shape.dtype) % word_bytes == 0;
}

// Packets that a row touches; cut at memory boundaries, it may touch one more than it fills.
inline std::int64_t packets_of(const Matrix& shape) {
    return own_packets(shape) + (is_aligned(shape) ? 0 : 1);
}

// The next larger vector count that has a kernel.
inline int existing_vectors(const Config& config, RowUse use) {
    if (use == RowUse::kFewRows) return config.vectors;
    if (config.word_bytes > 0) return config.vectors <= 2 ? 2 : 4;
    if (!config.aligned) return config.vectors <= 2 ? 2 : kMostVectors;
    if (config.alone || accumulates(use)) return config.vectors;
    return 4;
}

}  // namespace norms
