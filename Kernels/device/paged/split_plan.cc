#include "Kernels/device/paged/split_plan.h"

#include <algorithm>
#include <cstdint>

#include "Kernels/device/require.h"

namespace device {
namespace {

// The segments of one item, which are the plan's last, become its parts.
void number_parts(SplitPlan& plan, std::size_t first) {
    const int parts = static_cast<int>(plan.segments.size() - first);
    if (parts == 1) return;
    const int first_slot = plan.slots;
    for (auto segment = plan.segments.begin() + first; segment != plan.segments.end(); ++segment) {
        segment->slot = plan.slots++;
        segment->first_slot = first_slot;
        segment->parts = parts;
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
    require(rules.blocks_max > 0, "split plan: blocks_max is ", rules.blocks_max,
            "; use at least 1");
    require(rules.tiles_min > 0, "split plan: tiles_min is ", rules.tiles_min, "; use at least 1");
    require(rules.segment_cost >= 0, "split plan: segment_cost is negative");
    std::int64_t total = 0;
    for (const int count : tiles) {
        require(count >= 0, "split plan: an item has ", count, " tiles");
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

    SplitPlan plan;
    plan.segments.reserve(items + blocks);
    plan.block_begin.reserve(blocks + 1);
    plan.block_begin.push_back(0);
    std::int64_t spent = 0;
    // What the blocks up to this one should have done: total * (block + 1) / blocks, rounded down.
    std::int64_t due = total / blocks;
    std::int64_t rest = total % blocks;
    bool is_last = blocks == 1;
    bool is_empty = true;
    auto close_block = [&] {
        plan.block_begin.push_back(static_cast<int>(plan.segments.size()));
        is_last = plan.blocks() + 1 >= blocks;
        is_empty = true;
        due += total / blocks;
        rest += total % blocks;
        if (rest >= blocks) {
            rest -= blocks;
            ++due;
        }
    };
    for (std::size_t item = 0; item < tiles.size(); ++item) {
        const std::size_t first = plan.segments.size();
        int begin = 0;
        for (bool done = false; !done;) {
            // Relative to the sum of all shares so far, so that the next block makes up the rest.
            const std::int64_t fits = due - spent - rules.segment_cost;
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
            is_empty = false;
            begin += count;
            spent += count + rules.segment_cost;
            done = begin == tiles[item];
            if (!is_last && spent >= due) close_block();
        }
        number_parts(plan, first);
    }
    if (!is_empty) close_block();
    return plan;
}

}  // namespace device
