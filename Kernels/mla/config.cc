#include "Kernels/mla/config.h"

#include <algorithm>

namespace mla {
namespace {

using device::require;

std::string number(std::int64_t value) { return std::to_string(value); }

bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

int ceil_divide(int value, int divisor) { return (value + divisor - 1) / divisor; }

}  // namespace

Config choose(const Shape& shape, const Machine& machine) {
    require(is_power_of_two(shape.page_size) && shape.page_size <= 1024,
            "page_size is " + number(shape.page_size) + "; use a power of two up to 1024");
    require(shape.batch > 0, "batch is " + number(shape.batch) + "; at least 1");
    require(shape.q_len >= 1 && shape.q_len <= 16,
            "q_len is " + number(shape.q_len) + "; use 1 to 16");
    require(shape.heads >= 1 && shape.heads <= 256,
            "heads is " + number(shape.heads) + "; use 1 to 256");
    const int rows = shape.rows();
    if (rows <= 16) return {Variant::k16Rows, 16, 32, 2, 1};
    if (rows <= 32) return {Variant::k32Rows, 32, 32, 1, 1};
    const int row_blocks = ceil_divide(rows, 64);
    // The seesaw's copies are of 32 tokens.
    const bool is_seesaw = machine.has_wgmma && shape.page_size >= 32;
    return {is_seesaw ? Variant::kSeesaw : Variant::k64Rows, 64, 64, 1, row_blocks};
}

Plan plan(const Shape& shape, const PageTable& table, const Machine& machine) {
    const Config config = choose(shape, machine);
    device::validate(table, shape.cache());
    std::vector<int> tiles;
    for (int sequence = 0; sequence < shape.batch; ++sequence) {
        tiles.push_back(ceil_divide(table.lengths[sequence], config.tokens));
    }
    const int resident = machine.multiprocessors * config.blocks_per_multiprocessor;
    // A segment loads its queries and stores its sums in about the time of two tiles.
    const device::SplitRules rules = {std::max(1, resident / config.row_blocks), 4, 2};
    const device::SplitPlan cut = device::split(tiles, rules);

    Plan result = {config, {}, {}, {}, cut.slots};
    result.share_begin.assign(cut.block_begin.begin(), cut.block_begin.end());
    for (const device::Segment& part : cut.segments) {
        result.segments.push_back({part.item,
                                   table.indptr[part.item],
                                   table.lengths[part.item],
                                   part.tile_begin,
                                   part.tile_end,
                                   part.slot,
                                   {0, 0}});
        if (part.slot >= 0 && part.slot == part.first_slot) {
            result.merges.push_back({part.item, part.first_slot, part.parts, 0});
        }
    }
    return result;
}

std::string describe(const Plan& plan) {
    const std::string kind = plan.config.variant == Variant::kSeesaw ? "seesaw, " : "";
    return kind + "rows " + number(plan.config.row_blocks) + "x" + number(plan.config.rows) +
           " tile " + number(plan.config.tokens) + " blocks " + number(plan.blocks()) +
           " segments " + number(static_cast<std::int64_t>(plan.segments.size())) + " slots " +
           number(plan.slots);
}

}  // namespace mla
