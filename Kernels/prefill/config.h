// Which kernel and tile serve a shape: a pure function, tested without a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "Kernels/device/machine.h"

namespace prefill {

using device::Arch;
using device::Machine;

struct Shape {
    std::int64_t queries;
    int sequences;
    int heads;
    int kv_heads;
    // Of queries and keys.
    int head_dim;
    // Of values and outputs.
    int value_dim;
    // In the longest sequence.
    int keys;
    bool causal = true;
};

// A tile that some kernel is built with.
struct TileShape {
    int head_dim;
    int rows;  // queries
    int keys;  // per step
    int value_dim = head_dim;

    constexpr bool operator==(const TileShape& other) const {
        return head_dim == other.head_dim && rows == other.rows && keys == other.keys &&
               value_dim == other.value_dim;
    }
};

struct Config {
    Arch arch;
    TileShape tile;
};

// Throws std::invalid_argument, naming the field, for a shape that no kernel supports.
Config choose(const Shape& shape, const Machine& machine);

// `hopper 192x80`, for results.
std::string describe(const Config& config);

}  // namespace prefill
