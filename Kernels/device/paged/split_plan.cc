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

// How blocks take their segments.
enum class Cut {
    // Whole items only, as many as fit.
    kNowhere,
    // Parts of one item only, of even length.
    kWithin,
    // Whatever comes next, until they are full.
    kAnywhere,
};

// Hands out segments in order, so that no block costs more than `most`. `take(item, begin, count)`
// is called for every segment, `close()` after the last one of every block.
template <class Take, class Close>
void deal(const std::vector<int>& tiles, Cut cut, int segment_cost, std::int64_t most,
          const Take& take, const Close& close) {
    const std::int64_t longest = std::max<std::int64_t>(1, most - segment_cost);
    std::int64_t spent = 0;
    bool is_empty = true;
    const auto close_block = [&] {
        close();
        spent = 0;
        is_empty = true;
    };
    for (std::size_t item = 0; item < tiles.size(); ++item) {
        const int count = tiles[item];
        if (cut == Cut::kWithin) {
            const auto parts =
                static_cast<int>(std::max<std::int64_t>(1, (count + longest - 1) / longest));
            for (int part = 0; part < parts; ++part) {
                const auto begin = static_cast<int>(std::int64_t{count} * part / parts);
                take(item, begin,
                     static_cast<int>(std::int64_t{count} * (part + 1) / parts) - begin);
                close();
            }
            continue;
        }
        for (int begin = 0; begin < count || begin == 0;) {
            const int left = count - begin;
            const std::int64_t room = most - spent - segment_cost;
            const bool fits = left <= room;
            // A sliver is not worth a segment.
            const bool too_little = cut == Cut::kNowhere || room <= segment_cost;
            if (!is_empty && !fits && too_little) {
                close_block();
                continue;
            }
            const int taken = fits || cut == Cut::kNowhere
                                  ? left
                                  : static_cast<int>(std::max<std::int64_t>(room, 1));
            take(item, begin, taken);
            begin += std::max(taken, 1);
            spent += taken + segment_cost;
            is_empty = false;
            if (spent >= most) close_block();
        }
    }
    if (!is_empty) close_block();
}

// Blocks that `deal` fills, counted item by item rather than segment by segment; more than
// `blocks_max` if one would cost more than `most`, or as soon as there are.
class Count {
  public:
    Count(const SplitRules& rules, std::int64_t most)
        : rules_(rules), most_(most), longest_(most - rules.segment_cost) {}

    std::int64_t whole(const std::vector<int>& tiles) {
        for (const int count : tiles) {
            if (count > longest_) return too_many();
            if (spent_ + count + rules_.segment_cost > most_) close();
            spend(count);
            if (blocks_ > rules_.blocks_max) return blocks_;
        }
        return total();
    }

    std::int64_t within(const std::vector<int>& tiles) {
        if (longest_ < 1) return too_many();
        int last = -1;
        std::int64_t parts = 0;
        for (const int count : tiles) {
            // The heads of a sequence are equally long.
            if (count != last) parts = parts_of(count);
            last = count;
            blocks_ += parts;
            if (blocks_ > rules_.blocks_max) return blocks_;
        }
        return blocks_;
    }

    std::int64_t anywhere(const std::vector<int>& tiles) {
        if (longest_ < 1) return too_many();
        for (const int count : tiles) {
            std::int64_t left = count;
            if (!is_empty_) {
                const std::int64_t room = most_ - spent_ - rules_.segment_cost;
                if (left <= room) {
                    spend(count);
                    continue;
                }
                if (room > rules_.segment_cost) left -= room;
                close();
            }
            // Blocks of their own, all full but the last.
            const std::int64_t parts = parts_of(left);
            blocks_ += parts - 1;
            spend(left - (parts - 1) * longest_);
            if (blocks_ > rules_.blocks_max) return blocks_;
        }
        return total();
    }

  private:
    std::int64_t parts_of(std::int64_t count) const {
        return count <= longest_ ? 1 : (count + longest_ - 1) / longest_;
    }
    void spend(std::int64_t count) {
        spent_ += count + rules_.segment_cost;
        is_empty_ = false;
        if (spent_ >= most_) close();
    }
    void close() {
        blocks_ += is_empty_ ? 0 : 1;
        spent_ = 0;
        is_empty_ = true;
    }
    std::int64_t total() const { return blocks_ + (is_empty_ ? 0 : 1); }
    std::int64_t too_many() const { return std::int64_t{rules_.blocks_max} + 1; }

    const SplitRules& rules_;
    std::int64_t most_, longest_, blocks_ = 0, spent_ = 0;
    bool is_empty_ = true;
};

// Whether blocks_max blocks suffice if none may cost more than `most`.
bool suffices(const std::vector<int>& tiles, const SplitRules& rules, Cut cut, std::int64_t most) {
    Count count(rules, most);
    const std::int64_t blocks = cut == Cut::kNowhere  ? count.whole(tiles)
                                : cut == Cut::kWithin ? count.within(tiles)
                                                      : count.anywhere(tiles);
    return blocks <= rules.blocks_max;
}

// The least cost from `least` on that suffices, which `most` does; to within a 64th, because a plan
// is made for every step of a server.
std::int64_t least_cost(const std::vector<int>& tiles, const SplitRules& rules, Cut cut,
                        std::int64_t least, std::int64_t most) {
    const std::int64_t near = 1 + least / 64;
    while (most - least >= near) {
        const std::int64_t middle = (least + most) / 2;
        if (suffices(tiles, rules, cut, middle)) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    return most;
}

}  // namespace

SplitPlan split(const std::vector<int>& tiles, const SplitRules& rules) {
    require(rules.blocks_max > 0, "split plan: blocks_max is ", rules.blocks_max,
            "; use at least 1");
    require(rules.segment_cost >= 0, "split plan: segment_cost is negative");
    require(rules.merge_cost >= 0, "split plan: merge_cost is negative");
    std::int64_t total = 0;
    for (const int count : tiles) {
        require(count >= 0, "split plan: an item has ", count, " tiles");
        total += count + rules.segment_cost;
    }
    // A block does at least its share of everything, and a segment of a tile.
    const std::int64_t blocks = rules.blocks_max;
    const std::int64_t least =
        std::max<std::int64_t>((total + blocks - 1) / blocks, rules.segment_cost + 1);
    Cut cut = Cut::kAnywhere;
    // Every block but the last is full but for a sliver, or has begun one more segment.
    const std::int64_t enough = least + 2 * rules.segment_cost + 1;
    std::int64_t most = least_cost(tiles, rules, cut, least, enough);
    // A block with a sixteenth more ends hardly later: once others are done, it has more of the
    // memory's bandwidth. More parts would cost more.
    constexpr std::int64_t kNearlyEqual = 16;
    const std::int64_t nearly = most + most / kNearlyEqual;
    const std::int64_t nearly_whole = nearly + rules.merge_cost;
    if (suffices(tiles, rules, Cut::kNowhere, nearly_whole)) {
        cut = Cut::kNowhere;
        most = least_cost(tiles, rules, cut, least, nearly_whole);
    } else if (suffices(tiles, rules, Cut::kWithin, nearly)) {
        cut = Cut::kWithin;
        most = least_cost(tiles, rules, cut, least, nearly);
    }

    SplitPlan plan;
    plan.segments.reserve(tiles.size() + blocks);
    plan.block_begin.reserve(blocks + 1);
    plan.block_begin.push_back(0);
    std::size_t first = 0;
    deal(
        tiles, cut, rules.segment_cost, most,
        [&](std::size_t item, int begin, int count) {
            if (begin == 0) first = plan.segments.size();
            plan.segments.push_back({static_cast<int>(item), begin, begin + count, -1, -1, 1});
            if (begin + count == tiles[item]) number_parts(plan, first);
        },
        [&] { plan.block_begin.push_back(static_cast<int>(plan.segments.size())); });
    return plan;
}

}  // namespace device
