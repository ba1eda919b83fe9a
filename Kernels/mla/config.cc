#include "Kernels/mla/config.h"

#include <algorithm>
#include <iterator>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"
#include "Kernels/mla/blackwell/tiles.h"
#include "Kernels/mla/portable/tiles.h"

namespace mla {
namespace {

using device::divide_up;
using device::require;

std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace

Config choose(const Shape& shape, const Machine& machine) {
    validate(shape.cache(), shape.q_len);
    require(shape.heads >= 1 && shape.heads <= 256, "heads is ", shape.heads, "; use 1 to 256");
    require(shape.cache_bytes == 1 || shape.cache_bytes == 2, "elements of the cache have ",
            shape.cache_bytes, " bytes; use 1 or 2");
    const int rows = shape.rows();
    std::size_t index = 0;
    while (index + 1 < std::size(portable::kTiles) && portable::kTiles[index].rows < rows) ++index;
    const portable::TileShape& tile = portable::kTiles[index];
    const int row_blocks = divide_up(rows, tile.rows);
    // Hopper's kernel copies 32 tokens at once. It multiplies 64 rows, however few there are: its
    // products take less time than reading the cache, and less than the portable kernel's.
    // It does not convert the elements of a cache.
    if (machine.arch == Arch::kHopper && shape.page_size >= 32 && shape.cache_bytes == 2) {
        return {Arch::kHopper, 0, 64, 64, 1, 1, divide_up(rows, 64)};
    }
    // Few rows are bound by memory, where tensor cores that fill 64 rows gain nothing.
    const bool many = tile.rows == 64;
    // A pair of blocks with 64 rows needs less time for its products than for reading the cache,
    // although half of its rows are empty then.
    if (machine.arch == Arch::kBlackwell && many && shape.page_size >= blackwell::kLeastBoxTokens) {
        return {Arch::kBlackwell,
                0,
                blackwell::kRows,
                blackwell::kTokens,
                1,
                blackwell::kBlocks,
                divide_up(rows, blackwell::kRows)};
    }
    return {Arch::kPortable, index, tile.rows, tile.tokens, tile.blocks, 1, row_blocks};
}

Plan plan(const Shape& shape, const PageTable& table, const Machine& machine) {
    const Config config = choose(shape, machine);
    device::validate(table, shape.cache());
    std::vector<int> tiles;
    for (int sequence = 0; sequence < shape.batch; ++sequence) {
        tiles.push_back(divide_up(table.lengths[sequence], config.tokens));
    }
    const int resident = machine.multiprocessors * config.blocks_per_multiprocessor;
    const int blocks_of_share = config.row_blocks * config.cluster_blocks;
    // Loading a segment's queries and storing its sums takes about as long as two tiles, a merge as
    // three.
    const device::SplitRules rules = {std::max(1, resident / blocks_of_share), 2, 3};
    const device::SplitPlan cut = device::split(tiles, rules);

    Plan result = {config, {}, {}, {}, {}, cut.slots};
    result.share_begin.assign(cut.block_begin.begin(), cut.block_begin.end());
    for (const device::Segment& part : cut.segments) {
        result.segments.push_back({part.item, table.indptr[part.item], table.lengths[part.item],
                                   part.tile_begin, part.tile_end, part.slot, 0, 0});
        if (part.slot >= 0 && part.slot == part.first_slot) {
            result.merges.push_back({part.item, part.first_slot, part.parts, 0});
        }
    }
    result.first_segments.reserve(cut.blocks());
    for (int share = 0; share < cut.blocks(); ++share) {
        const std::int32_t begin = result.share_begin[share], end = result.share_begin[share + 1];
        for (std::int32_t index = begin; index < end; ++index) {
            result.segments[index].share_begin = begin;
            result.segments[index].share_end = end;
        }
        result.first_segments.push_back(result.segments[begin]);
    }
    return result;
}

std::string describe(const Plan& plan) {
    return device::to_string(plan.config.arch) + ", rows " + number(plan.config.row_blocks) + "x" +
           number(plan.config.rows) + " tile " + number(plan.config.tokens) + " blocks " +
           number(plan.blocks()) + " segments " +
           number(static_cast<std::int64_t>(plan.segments.size())) + " slots " + number(plan.slots);
}

}  // namespace mla
