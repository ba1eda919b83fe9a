// Which tile a product runs with: pure host code, so that every choice can be tested without a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace gemm {

enum class ElementType { kBf16, kF16, kFp8 };
enum class Layout { kDense, kContiguous, kMasked };

constexpr int element_bytes(ElementType type) { return type == ElementType::kFp8 ? 1 : 2; }

// Elements of k, and columns of b, that share one scale.
constexpr int kScaleBlock = 128;
// Groups of the contiguous layout start at multiples of this many rows.
constexpr int kGroupAlignment = 128;

struct Shape {
    int rows;  // of a and out, padding included; masked: of one group
    int n;
    int k;
    int groups;
    ElementType type;
    Layout layout;
    // Rows that a group is expected to use, for the choice of a tile: 0 where nobody knows.
    int expected_rows;
};

struct Machine {
    int multiprocessors;
};

enum class Kernel {
    kPortable,  // mma.sync and cp.async: every architecture
    kHopper,    // wgmma and TMA: sm_90a
};

struct Config {
    Kernel kernel;
    int tile_rows;
    int tile_columns;
    int stages;
    int split;   // blocks that share out the k of one tile
    int blocks;  // of the grid; each walks over its tiles
};

// Throws std::invalid_argument with the value and what is supported.
void validate(const Shape& shape);

Config choose(const Shape& shape, const Machine& machine, Kernel kernel);

std::string to_string(const Config& config);

}  // namespace gemm
