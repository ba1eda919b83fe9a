#include "Kernels/decode/config.h"

#include <algorithm>

namespace decode {
namespace {

using device::require;

std::string number(std::int64_t value) { return std::to_string(value); }

bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

int ceil_divide(int value, int divisor) { return (value + divisor - 1) / divisor; }

}  // namespace

Config choose(const Shape& shape) {
    require(shape.head_dim == 64 || shape.head_dim == 128,
            "head_dim is " + number(shape.head_dim) + "; use 64 or 128");
    require(is_power_of_two(shape.page_size) && shape.page_size <= 1024,
            "page_size is " + number(shape.page_size) + "; use a power of two up to 1024");
    require(shape.batch > 0, "batch is " + number(shape.batch) + "; at least 1");
    require(shape.q_len >= 1 && shape.q_len <= 16,
            "q_len is " + number(shape.q_len) + "; use 1 to 16");
    require(shape.kv_heads > 0 && shape.heads > 0 && shape.heads % shape.kv_heads == 0,
            number(shape.heads) + " heads do not share " + number(shape.kv_heads) +
                " of the cache evenly");
    require(shape.cache_bytes == 1 || shape.cache_bytes == 2,
            "elements of the cache have " + number(shape.cache_bytes) + " bytes; use 1 or 2");
    const int row_tiles = shape.rows() > kTileRows ? 2 : 1;
    return {row_tiles, ceil_divide(shape.rows(), row_tiles * kTileRows),
            tile_tokens(shape.head_dim, row_tiles, shape.cache_bytes)};
}

Plan plan(const Shape& shape, const PageTable& table, int multiprocessors) {
    const Config config = choose(shape);
    device::validate(table, shape.cache());
    std::vector<int> tiles;
    tiles.reserve(static_cast<std::size_t>(shape.batch) * shape.kv_heads);
    for (int sequence = 0; sequence < shape.batch; ++sequence) {
        const int count = ceil_divide(table.lengths[sequence], config.tile_tokens);
        tiles.insert(tiles.end(), shape.kv_heads, count);
    }
    int resident = multiprocessors * kBlocksPerMultiprocessor;
    // One block merges all parts of an item. Where they would be many, half the blocks find the
    // same bandwidth and leave half of them.
    const int rows = std::min(shape.rows(), config.row_tiles * kTileRows);
    const int parts = resident / config.row_blocks / static_cast<int>(tiles.size());
    if (rows * parts > kMostMergedRows) resident = multiprocessors;
    // A block's warps take tiles in turn, and merge their results at the end of a segment in about
    // the time of two tiles each.
    const device::SplitRules rules = {std::max(1, resident / config.row_blocks), 2 * kWarps,
                                      2 * kWarps};
    const device::SplitPlan cut = device::split(tiles, rules);

    Plan result = {config, {}, {}, cut.slots, static_cast<int>(tiles.size())};
    result.share_begin.assign(cut.block_begin.begin(), cut.block_begin.end());
    result.segments.reserve(cut.segments.size());
    for (const device::Segment& part : cut.segments) {
        const int sequence = part.item / shape.kv_heads;
        result.segments.push_back({sequence,
                                   part.item % shape.kv_heads,
                                   table.indptr[sequence],
                                   table.lengths[sequence],
                                   part.tile_begin,
                                   part.tile_end,
                                   part.slot,
                                   part.first_slot,
                                   part.parts,
                                   part.item,
                                   {0, 0}});
    }
    return result;
}

std::string describe(const Plan& plan) {
    return "rows " + number(plan.config.row_blocks) + "x" +
           number(plan.config.row_tiles * kTileRows) + " tile " + number(plan.config.tile_tokens) +
           " blocks " + number(plan.blocks()) + " segments " +
           number(static_cast<std::int64_t>(plan.segments.size())) + " slots " + number(plan.slots);
}

}  // namespace decode
