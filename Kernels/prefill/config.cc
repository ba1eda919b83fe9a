#include "Kernels/prefill/config.h"

#include <algorithm>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"
#include "Kernels/prefill/blackwell/tiles.h"
#include "Kernels/prefill/hopper/tiles.h"
#include "Kernels/prefill/portable/tiles.h"

namespace prefill {
namespace {

using device::divide_up;
using device::require;

template <std::size_t kCount>
const TileShape* find(const TileShape (&tiles)[kCount], const Shape& shape, int rows = 0) {
    for (const TileShape& tile : tiles) {
        if (tile.head_dim == shape.head_dim && tile.value_dim == shape.value_dim &&
            (rows == 0 || tile.rows == rows)) {
            return &tile;
        }
    }
    return nullptr;
}

// Cycles until Hopper's tiles of heads of 128 are done if all sequences have the average number of
// queries: the longest tile's, or those of an SM's share of all if that is more. Heads that share
// keys may share tiles. Costs of tiles were fitted to times of the suites on an H200.
double cycles_of(const Shape& shape, const Machine& machine, int rows, int keys_per_step,
                 double cycles_per_key) {
    constexpr double kCyclesPerTile = 4100;
    const std::int64_t queries = divide_up(shape.queries, shape.sequences);
    const int group = shape.heads / shape.kv_heads;
    const std::int64_t apart = group * divide_up(queries, rows);
    const std::int64_t shared = group <= rows ? divide_up(queries, rows / group) : apart;
    const auto tiles =
        static_cast<double>(std::min(apart, shared) * shape.kv_heads * shape.sequences);
    const std::int64_t queries_per_tile = shared < apart ? rows / group : rows;
    const auto cycles = [&](std::int64_t keys) {
        return kCyclesPerTile +
               cycles_per_key * static_cast<double>(divide_up(keys, keys_per_step) * keys_per_step);
    };
    // On average; under the causal mask tiles see the fewer keys the earlier they are.
    const std::int64_t earlier = std::max<std::int64_t>(0, queries - queries_per_tile);
    const std::int64_t unseen = shape.causal ? earlier / 2 : 0;
    return std::max(cycles(shape.keys),
                    tiles * cycles(shape.keys - unseen) / machine.multiprocessors);
}

// Rows of Hopper's tile: many where that leaves no SM without work, unless sequences are so short
// that fewer rows are left empty in lower tiles. For heads of 64 there are two tall tiles: the one
// with fewer keys per step wastes less of the last step, the other loses less to each step. On an
// H200 the first is 1 % faster at 2048 keys and 3 % slower at 3464.
int hopper_rows(const Shape& shape, const Machine& machine) {
    constexpr int kManyKeys = 3072;
    if (shape.head_dim == 256) return 128;
    const int rows = shape.head_dim == 64 && shape.keys < kManyKeys ? 256 : 192;
    if (shape.queries * shape.heads < std::int64_t{rows} * machine.multiprocessors) return 128;
    if (shape.head_dim != 128) return rows;
    const double tall = cycles_of(shape, machine, 192, 80, 24.2);
    return tall <= cycles_of(shape, machine, 128, 128, 18.65) ? 192 : 128;
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
        return {Arch::kHopper, *find(hopper::kTiles, shape, hopper_rows(shape, machine))};
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
