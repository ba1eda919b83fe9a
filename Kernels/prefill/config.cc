#include "Kernels/prefill/config.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"
#include "Kernels/prefill/blackwell/tiles.h"
#include "Kernels/prefill/hopper/tiles.h"
#include "Kernels/prefill/portable/tiles.h"

namespace prefill {
namespace {

using device::divide_up;
using device::require;

bool serves(const TileShape& tile, const Shape& shape) {
    return tile.head_dim == shape.head_dim && tile.value_dim == shape.value_dim;
}

template <std::size_t kCount>
const TileShape* find(const TileShape (&tiles)[kCount], const Shape& shape) {
    for (const TileShape& tile : tiles) {
        if (serves(tile, shape)) return &tile;
    }
    return nullptr;
}

// Cycles until Hopper's tiles are done if all sequences have the average number of queries: the
// longest tile's, or those of an SM's share of all if that is more. Heads that share keys may share
// tiles.
double cycles_of(const Shape& shape, const Machine& machine, const TileShape& tile,
                 double cycles_per_key) {
    const std::int64_t queries = divide_up(shape.queries, shape.sequences);
    const int group = shape.heads / shape.kv_heads;
    const std::int64_t apart = group * divide_up(queries, tile.rows);
    const std::int64_t shared = group <= tile.rows ? divide_up(queries, tile.rows / group) : apart;
    const auto tiles =
        static_cast<double>(std::min(apart, shared) * shape.kv_heads * shape.sequences);
    const std::int64_t queries_per_tile = shared < apart ? tile.rows / group : tile.rows;
    const auto cycles = [&](std::int64_t keys) {
        const std::int64_t taken = divide_up(keys, tile.keys) * tile.keys;
        return hopper::kCyclesPerTile + cycles_per_key * static_cast<double>(taken);
    };
    // On average; under the causal mask tiles see the fewer keys the earlier they are.
    const std::int64_t earlier = std::max<std::int64_t>(0, queries - queries_per_tile);
    const std::int64_t unseen = shape.causal ? earlier / 2 : 0;
    return std::max(cycles(shape.keys),
                    tiles * cycles(shape.keys - unseen) / machine.multiprocessors);
}

// That of Hopper's which is done soonest.
const TileShape& hopper_tile(const Shape& shape, const Machine& machine) {
    const TileShape* chosen = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t index = 0; index < std::size(hopper::kTiles); ++index) {
        const TileShape& tile = hopper::kTiles[index];
        if (!serves(tile, shape)) continue;
        const double cycles = cycles_of(shape, machine, tile, hopper::kCyclesPerKey[index]);
        if (cycles < least) {
            least = cycles;
            chosen = &tile;
        }
    }
    return *chosen;
}

}  // namespace

Config choose(const Shape& shape, const Machine& machine) {
    const TileShape* portable = find(portable::kTiles, shape);
    require(portable != nullptr, "head_dim is ", shape.head_dim, " and value_dim ", shape.value_dim,
            "; heads of 64, 128 and 256 are supported, and of 192 with values of 128");
    require(shape.kv_heads >= 1 && shape.heads >= 1 && shape.heads % shape.kv_heads == 0,
            "heads is ", shape.heads, " and kv_heads ", shape.kv_heads,
            "; heads must be a multiple of kv_heads");
    require(shape.queries >= 1, "queries is ", shape.queries, "; there must be at least one");
    require(shape.sequences >= 1, "sequences is ", shape.sequences, "; there must be at least one");
    // Small heads with few keys: there is nothing to prefetch, and filling Hopper's pipeline costs
    // more than its tensor cores save. From 256 on it wins (suite `small` has both).
    constexpr int kFewKeys = 128;
    if (machine.arch == Arch::kHopper && (shape.head_dim > 64 || shape.keys > kFewKeys)) {
        return {Arch::kHopper, hopper_tile(shape, machine)};
    }
    if (machine.arch == Arch::kBlackwell) {
        return {Arch::kBlackwell, *find(blackwell::kTiles, shape)};
    }
    return {Arch::kPortable, *portable};
}

std::string describe(const Config& config) {
    return device::to_string(config.arch) + " " + std::to_string(config.tile.rows) + "x" +
           std::to_string(config.tile.keys);
}

}  // namespace prefill
