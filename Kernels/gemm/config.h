// Which kernel and tile a product runs with: pure host code, so that every choice can be tested
// without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "Kernels/device/dtype.h"
#include "Kernels/device/machine.h"

namespace gemm {

using device::Arch;
using device::Dtype;
using device::Machine;

enum class Layout { kDense, kContiguous, kMasked };

// Elements of k, and columns of b, that share one scale.
constexpr int kScaleBlock = 128;
// Groups of the contiguous layout start at multiples of this many rows.
constexpr int kGroupAlignment = 128;
// Row tiles that a block can list (scheduler.cuh); dense products need no list.
constexpr int kMaxRowTiles = 3072;

struct Shape {
    int rows;  // of a and out, padding included; if masked, per group
    int n;
    int k;
    int groups;
    Dtype dtype;  // bf16, f16, e4m3, fp8_ue8m0, mxfp8, nvfp4 or mxfp4
    Layout layout;
    // Rows that a group is expected to use, for the tile heuristic: 0 if unknown.
    int expected_rows;

    // fp32 scales of blocks of 128.
    bool scaled() const { return dtype == Dtype::E4m3; }
    // Scales in tiles, of 128, 32 or 16.
    bool block_scaled() const {
        return dtype == Dtype::Fp8Ue8m0 || dtype == Dtype::Mxfp8 || dtype == Dtype::Nvfp4 ||
               dtype == Dtype::Mxfp4;
    }
    // Of a row of an operand.
    std::int64_t k_bytes() const { return std::int64_t{k} * device::bits_of(dtype) / 8; }
    // Rows that one group is likely to have.
    std::int64_t likely_rows() const;
    // Tiles of `tile_rows` rows if every row is used.
    std::int64_t row_tiles_at_most(int tile_rows) const;
};

struct Config {
    Arch arch;
    std::size_t tile;  // index into the architecture's kTiles
    int tile_rows;     // of a pair of blocks, if two share a tile
    int tile_columns;
    int stages;
    int split;   // split-K: blocks that share the k of one tile
    int blocks;  // in the grid; each walks over its tiles
};

// Throws std::invalid_argument with the value and what is supported.
void validate(const Shape& shape);

Config choose(const Shape& shape, const Machine& machine);

// Up to `most` that may be the fastest, the one that is chosen first: a model of so many tiles is
// often wrong by a few percent, and on an H200 the fastest is among eight of them.
std::vector<Config> candidates(const Shape& shape, const Machine& machine, std::size_t most);

// What each architecture would run for a valid shape.
namespace portable {
Config choose(const Shape& shape, const Machine& machine);
}
namespace hopper {
std::vector<Config> candidates(const Shape& shape, const Machine& machine, std::size_t most);
}
namespace blackwell {
Config choose(const Shape& shape, const Machine& machine);
}  // namespace blackwell

// `hopper 128x256, 3 stages`, for errors.
std::string describe(const Config& config);

}  // namespace gemm
