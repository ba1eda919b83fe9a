// Which kernel and tile serve a shape: a pure function of values, tested without a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace attention {

struct Shape {
    std::int64_t queries;
    int heads;
    int kv_heads;
    int head_dim;
    // Of the longest sequence.
    int keys;
};

struct Machine {
    int multiprocessors;
    // The device has wgmma, and the kernels that use it are built.
    bool has_wgmma;
};

enum class Kernel {
    // mma.sync and cp.async: every architecture.
    kMma,
    // wgmma and TMA: Hopper.
    kWgmma,
};

struct Config {
    Kernel kernel = Kernel::kMma;
    // Queries of a tile.
    int tile_rows = 128;
    // Keys that a block takes at once.
    int tile_keys = 64;

    bool operator==(const Config& other) const {
        return kernel == other.kernel && tile_rows == other.tile_rows &&
               tile_keys == other.tile_keys;
    }
};

// The tile that a kernel is built with.
Config config_of(Kernel kernel, int head_dim);

// Throws std::invalid_argument, naming the field, for a shape that no kernel serves.
Config choose(const Shape& shape, const Machine& machine);

// `wgmma 128x128`, for results.
std::string describe(const Config& config);

}  // namespace attention
