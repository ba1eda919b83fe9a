#include "Kernels/device/paged/split_plan.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>

#include "Kernels/device/testing.h"

namespace {

using device::Segment;
using device::split;
using device::SplitPlan;
using device::SplitRules;
using testing::expect;

// Every tile of every item once, parts numbered in order, each in its own slot.
void check_cover(const std::vector<int>& tiles, const SplitRules& rules, const SplitPlan& plan) {
    std::vector<int> reached(tiles.size(), 0), segments(tiles.size(), 0);
    int slots = 0;
    for (const Segment& segment : plan.segments) {
        expect(segment.tile_begin == reached[segment.item], "tiles in order");
        expect(segment.tile_end >= segment.tile_begin, "no negative segment");
        reached[segment.item] = segment.tile_end;
        if (segment.parts > 1) {
            expect(segment.slot == slots++, "slots in order");
            expect(segment.slot == segment.first_slot + segments[segment.item], "part of its item");
        } else {
            expect(segment.slot == -1, "a whole item has no slot");
        }
        ++segments[segment.item];
    }
    expect(slots == plan.slots, "every slot used");
    for (const Segment& segment : plan.segments) {
        expect(segment.parts == segments[segment.item], "parts counted");
    }
    for (std::size_t item = 0; item < tiles.size(); ++item) {
        expect(reached[item] == tiles[item] && segments[item] >= 1, "item covered");
    }
    expect(plan.blocks() <= rules.blocks_max, "not too many blocks");
    expect(std::is_sorted(plan.block_begin.begin(), plan.block_begin.end()), "blocks in order");
    expect(plan.block_begin.back() == static_cast<int>(plan.segments.size()), "all segments owned");
}

int heaviest(const SplitPlan& plan, int segment_cost) {
    int most = 0;
    for (int block = 0; block < plan.blocks(); ++block) {
        int cost = 0;
        for (int s = plan.block_begin[block]; s < plan.block_begin[block + 1]; ++s) {
            cost += plan.segments[s].tile_end - plan.segments[s].tile_begin + segment_cost;
        }
        most = std::max(most, cost);
    }
    return most;
}

void even_shares() {
    const SplitRules rules = {264, 2, 3};
    // One long sequence with 8 heads: all blocks work, none has more than a few tiles too many.
    const std::vector<int> one(8, 4096);
    const SplitPlan plan = split(one, rules);
    check_cover(one, rules, plan);
    expect(plan.blocks() == 264 && plan.segments.size() == 264, "one segment per block");
    expect(heaviest(plan, rules.segment_cost) <= 8 * 4096 / 264 + 4, "even");
    // As many equal items as blocks, or twice as many: nothing is cut.
    expect(split(std::vector<int>(264, 100), rules).slots == 0, "one item per block");
    expect(split(std::vector<int>(528, 100), rules).slots == 0, "two items per block");
    // Nearly as many: a few blocks stay idle, and items are only cut into whole shares.
    expect(split(std::vector<int>(512, 100), rules).slots == 0, "two items for each of 256 blocks");
    expect(split(std::vector<int>(64, 400), rules).segments.size() == 256, "four blocks per item");
    expect(split(std::vector<int>(200, 400), rules).slots > 0, "too many would be idle: cut");
    // The longest part decides: 29 tiles in ten parts of three are as good as in fourteen.
    expect(split(std::vector<int>(9, 29), {132, 2, 3}).blocks() == 90, "no more parts than help");
    // Cutting would save less than a merge costs.
    expect(split(std::vector<int>(100, 6), {132, 2, 3}).slots == 0, "no merge for little");
    expect(split(std::vector<int>(40, 11), {132, 2, 3}).slots > 0, "a merge for more");
    expect(split({4, 4}, rules).slots == 0, "little work");
}

void random_shapes() {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        std::vector<int> tiles(1 + random() % 300);
        const int longest = 1 << (random() % 12);
        for (int& count : tiles)
            count = random() % 5 == 0 ? 0 : static_cast<int>(random() % longest);
        const SplitRules rules = {1 + static_cast<int>(random() % 300),
                                  static_cast<int>(random() % 5), static_cast<int>(random() % 5)};
        const SplitPlan plan = split(tiles, rules);
        check_cover(tiles, rules, plan);
        double total = 0;
        for (const int count : tiles) total += count + rules.segment_cost;
        const double share = total / rules.blocks_max + 3 * rules.segment_cost + 2;
        expect(heaviest(plan, rules.segment_cost) <= share * 17 / 16 + rules.merge_cost,
               "no block has too much in round " + std::to_string(round));
    }
}

void refusals() {
    for (const SplitRules rules :
         {SplitRules{0, 1, 1}, SplitRules{1, -1, 1}, SplitRules{1, 1, -1}}) {
        bool refused = false;
        try {
            split({1}, rules);
        } catch (const std::invalid_argument&) {
            refused = true;
        }
        expect(refused, "an invalid rule is rejected");
    }
}

}  // namespace

int main() {
    even_shares();
    random_shapes();
    refusals();
    std::puts("ok");
}
