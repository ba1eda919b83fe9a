#include "Kernels/prefill/config.h"

#include "Kernels/device/require.h"
#include "Kernels/prefill/blackwell/tiles.h"
#include "Kernels/prefill/hopper/tiles.h"
#include "Kernels/prefill/portable/tiles.h"

namespace prefill {
namespace {

using device::require;

template <std::size_t kCount>
const TileShape* find(const TileShape (&tiles)[kCount], int head_dim) {
    for (const TileShape& tile : tiles) {
        if (tile.head_dim == head_dim) return &tile;
    }
    return nullptr;
}

}  // namespace

Config choose(const Shape& shape, const Machine& machine) {
    const TileShape* portable = find(portable::kTiles, shape.head_dim);
    require(portable != nullptr, "head_dim is ", shape.head_dim, "; it must be 64 or 128");
    require(shape.kv_heads >= 1 && shape.heads >= 1 && shape.heads % shape.kv_heads == 0,
            "heads is ", shape.heads, " and kv_heads ", shape.kv_heads,
            "; heads must be a multiple of kv_heads");
    require(shape.queries >= 1, "queries is ", shape.queries, "; there must be at least one");
    const TileShape* hopper = find(hopper::kTiles, shape.head_dim);
    // Small heads whose keys all fit in one tile: there is nothing to prefetch, and filling
    // Hopper's pipeline costs more than its tensor cores save. From two tiles on it wins (suite
    // `small` has both).
    if (machine.arch == Arch::kHopper && (shape.head_dim > 64 || shape.keys > hopper->keys)) {
        return {Arch::kHopper, *hopper};
    }
    if (machine.arch == Arch::kBlackwell) {
        return {Arch::kBlackwell, *find(blackwell::kTiles, shape.head_dim)};
    }
    return {Arch::kPortable, *portable};
}

std::string describe(const Config& config) {
    return device::to_string(config.arch) + " " + std::to_string(config.tile.rows) + "x" +
           std::to_string(config.tile.keys);
}

}  // namespace prefill
