#include "Kernels/device/paged/split_plan.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace device {
namespace {

void require(bool holds, const std::string& message) {
    if (!holds) throw std::invalid_argument("split plan: " + message);
}

// Turns the segments of a plan into parts of their items.
void number_parts(SplitPlan& plan, std::size_t items) {
    std::vector<int> parts(items, 0);
    for (const Segment& segment : plan.segments) ++parts[segment.item];
    int next = -1;
    for (Segment& segment : plan.segments) {
        segment.parts = parts[segment.item];
        if (segment.parts == 1) {
            segment.slot = segment.first_slot = -1;
            continue;
        }
        if (segment.tile_begin == 0) next = plan.slots;
        segment.first_slot = next;
        segment.slot = plan.slots++;
    }
}

// Rounds the number of blocks to a divisor or multiple of the number of equal items; false, and no
// change, if the items differ or too many blocks would be idle.
bool aligned_blocks(const std::vector<int>& tiles, std::int64_t& blocks) {
    constexpr std::int64_t kMostIdlePercent = 7;
    const auto items = static_cast<std::int64_t>(tiles.size());
    const bool is_equal = items > 0 && std::all_of(tiles.begin(), tiles.end(),
                                                   [&](int count) { return count == tiles[0]; });
    if (!is_equal) return false;
    const std::int64_t items_per_block = (items + blocks - 1) / blocks;
    const std::int64_t fewer =
        items < blocks ? blocks / items * items : (items + items_per_block - 1) / items_per_block;
    const bool divides = fewer % items == 0 || items % fewer == 0;
    if (!divides || fewer * 100 < blocks * (100 - kMostIdlePercent)) return false;
    blocks = fewer;
    return true;
}

}  // namespace

SplitPlan split(const std::vector<int>& tiles, const SplitRules& rules) {
    require(rules.blocks_max > 0,
            "blocks_max is " + std::to_string(rules.blocks_max) + "; use at least 1");
    require(rules.tiles_min > 0,
            "tiles_min is " + std::to_string(rules.tiles_min) + "; use at least 1");
    require(rules.segment_cost >= 0, "segment_cost is negative");
    std::int64_t total = 0;
    for (const int count : tiles) {
        require(count >= 0, "an item has " + std::to_string(count) + " tiles");
        total += count;
    }
    const auto items = static_cast<std::int64_t>(tiles.size());
    const std::int64_t worth = (total + items * rules.segment_cost) / rules.tiles_min;
    std::int64_t blocks =
        std::min<std::int64_t>(rules.blocks_max, std::max<std::int64_t>(1, worth));
    // Every cut adds a segment, except at item boundaries. Equal items are not cut if that leaves
    // few blocks idle.
    const bool is_even = aligned_blocks(tiles, blocks);
    const std::int64_t segments = is_even ? std::max(items, blocks) : items + blocks;
    total += segments * rules.segment_cost;
    // What the blocks up to this one should have done.
    auto due = [&](std::int64_t block) { return total * (block + 1) / blocks; };

    SplitPlan plan;
    plan.block_begin.push_back(0);
    std::int64_t spent = 0;
    auto close_block = [&] { plan.block_begin.push_back(static_cast<int>(plan.segments.size())); };
    for (std::size_t item = 0; item < tiles.size(); ++item) {
        int begin = 0;
        for (bool done = false; !done;) {
            const bool is_last = plan.blocks() + 1 >= blocks;
            const bool is_empty = plan.block_begin.back() == static_cast<int>(plan.segments.size());
            // Relative to the sum of all shares so far, so that the next block makes up the rest.
            const std::int64_t room = due(plan.blocks()) - spent;
            const std::int64_t fits = room - rules.segment_cost;
            const int left = tiles[item] - begin;
            // A sliver is not worth a segment, neither here nor in the next block.
            if (!is_last && !is_empty && fits < std::min(rules.tiles_min, left)) {
                close_block();
                continue;
            }
            int count = left;
            if (!is_last && fits + rules.segment_cost < left) {
                count = static_cast<int>(std::max<std::int64_t>(fits, 1));
            }
            plan.segments.push_back({static_cast<int>(item), begin, begin + count, -1, -1, 1});
            begin += count;
            spent += count + rules.segment_cost;
            done = begin == tiles[item];
            if (!is_last && spent >= due(plan.blocks())) close_block();
        }
    }
    if (plan.block_begin.back() != static_cast<int>(plan.segments.size())) close_block();
    number_parts(plan, tiles.size());
    return plan;
}

}  // namespace device
