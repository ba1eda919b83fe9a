#include "Kernels/prefill/work.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

#include "Kernels/device/integers.h"

namespace prefill {
namespace {

[[noreturn]] void refuse(std::size_t sequence, std::int64_t queries, std::int64_t keys,
                         const char* why) {
    throw std::invalid_argument("sequence " + std::to_string(sequence) + " has " +
                                std::to_string(queries) + " queries and " + std::to_string(keys) +
                                " keys; " + why);
}

std::vector<Tile> tiles_in_order(const Sequences& sequences, int tile_rows) {
    const auto& [starts_q, starts_kv, causal] = sequences;
    if (starts_q.empty() || starts_q.size() != starts_kv.size()) {
        throw std::invalid_argument(std::to_string(starts_q.size()) + " starts of queries and " +
                                    std::to_string(starts_kv.size()) +
                                    " of keys; both must be one more than the number of sequences");
    }
    if (tile_rows < 1)
        throw std::invalid_argument("tiles of " + std::to_string(tile_rows) + " rows");
    std::vector<Tile> tiles;
    for (std::size_t sequence = 0; sequence + 1 < starts_q.size(); ++sequence) {
        const std::int32_t queries = starts_q[sequence + 1] - starts_q[sequence];
        const std::int32_t keys = starts_kv[sequence + 1] - starts_kv[sequence];
        if (queries < 0 || keys < 0) refuse(sequence, queries, keys, "starts must not decrease");
        if (queries > 0 && keys == 0) refuse(sequence, queries, keys, "a query must see a key");
        if (causal && queries > keys) {
            refuse(sequence, queries, keys,
                   "with the causal mask its first queries would see no key");
        }
        for (std::int32_t first = 0; first < queries; first += tile_rows) {
            Tile tile;
            tile.first_row = starts_q[sequence] + first;
            tile.rows = std::min(tile_rows, queries - first);
            tile.first_key = starts_kv[sequence];
            tile.visible = causal ? keys - queries + first + 1 : keys;
            tile.step = causal ? 1 : 0;
            tile.part_row = -1;
            tiles.push_back(tile);
        }
    }
    return tiles;
}

// By steps alone: a tile takes as long with one row as with all, for its products have all; and
// under the causal mask a sequence's last tile, often of few rows, sees most keys.
void sort_longest_first(std::vector<Tile>& tiles) {
    std::stable_sort(tiles.begin(), tiles.end(),
                     [](const Tile& a, const Tile& b) { return a.seen() > b.seen(); });
}

// In steps: what a tile costs beside its own, and what merging does, of whatever or of a tail.
constexpr int kTileCost = 1;
constexpr int kMergeCost = 2;
constexpr int kTailMergeCost = 8;
// What writing a part's results and reading them again takes, in sixteenths of a key: on an H200
// 1 us per MB, with tiles of 128 keys and of 80 alike.
constexpr std::int64_t kPartCost = 103;

struct Steps {
    int all;
    // Those before a step that some query does not see, or sees only a part of.
    int full;
};

Steps steps_of(const Tile& tile, int keys) {
    return {device::divide_up(tile.seen(), keys), (tile.visible - 1) / keys};
}

// Parts of at most `longest` steps. All but the last have full steps only, so that each is a tile
// like any other.
int parts_of(const Steps& steps, int longest) {
    return std::min(device::divide_up(steps.all, longest), steps.full + 1);
}

// When SMs are done, in steps, if whoever is done first takes the next tile.
class Schedule {
  public:
    explicit Schedule(int multiprocessors)
        : ends_(std::greater<>(), std::vector<std::int64_t>(multiprocessors)) {}

    void add(int steps, int times) {
        for (int time = 0; time < times; ++time) {
            const std::int64_t end = ends_.top() + steps + kTileCost;
            ends_.pop();
            ends_.push(end);
            last_ = std::max(last_, end);
        }
    }

    std::int64_t last() const { return last_; }

  private:
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> ends_;
    std::int64_t last_ = 0;
};

// When parts of at most `longest` steps of `keys` are done and merged, the longest first.
std::int64_t end_of(const std::vector<Steps>& tiles, int longest, int times, int keys,
                    int multiprocessors) {
    std::vector<int> costs;
    std::int64_t merged = 0;
    for (const Steps& steps : tiles) {
        const int parts = parts_of(steps, longest);
        costs.insert(costs.end(), parts, device::divide_up(steps.all, parts));
        if (parts > 1) merged += parts;
    }
    std::sort(costs.begin(), costs.end(), std::greater<>());
    Schedule schedule(multiprocessors);
    for (const int cost : costs) schedule.add(cost, times);
    if (merged == 0) return schedule.last();
    return schedule.last() + kMergeCost + merged * times * kPartCost / (16 * keys);
}

// When SMs are done if each has the same share: no split ends sooner.
std::int64_t least_end(const std::vector<Steps>& tiles, int times, int multiprocessors) {
    std::int64_t sum = 0;
    for (const Steps& steps : tiles) sum += steps.all + kTileCost;
    return sum * times / multiprocessors;
}

// The latest end that a split is worth: it must save more than the model can tell.
std::int64_t worth(std::int64_t whole) { return whole - whole / 16; }

// Into parts of how many steps tiles are best divided; 0 if into none.
int longest_part(const std::vector<Steps>& tiles, int times, int keys, int multiprocessors) {
    // With more to do than this, SMs end at about the same time anyway.
    const std::int64_t most_parts = 4 * std::int64_t{multiprocessors};
    const std::int64_t count = std::int64_t{times} * tiles.size();
    if (2 * count > most_parts) return 0;
    int longest = 0, least = 1;
    for (const Steps& steps : tiles) {
        longest = std::max(longest, steps.all);
        least = std::max(least, steps.all - steps.full);
    }
    std::int64_t best = worth(end_of(tiles, longest, times, keys, multiprocessors));
    if (best <= least_end(tiles, times, multiprocessors) + kMergeCost) return 0;
    int chosen = 0;
    const auto consider = [&](int most) {
        const std::int64_t end = end_of(tiles, most, times, keys, multiprocessors);
        if (end < best) {
            best = end;
            chosen = most;
        }
    };
    // The shortest parts that can all start at once.
    int most = longest;
    while (least < most) {
        const int middle = (least + most) / 2;
        std::int64_t parts = 0;
        for (const Steps& steps : tiles) parts += parts_of(steps, middle);
        if (parts * times <= multiprocessors) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    if (most < longest) consider(most);
    for (int parts = 2; parts * count <= most_parts && parts <= 4; ++parts) {
        consider(device::divide_up(longest, parts));
    }
    return chosen;
}

// The last tiles, which only some SMs would have, and into how many parts each is best divided.
struct Tail {
    std::size_t tiles = 0;
    int parts = 1;
};

Tail tail_of(const std::vector<Steps>& tiles, int times, int multiprocessors) {
    const std::int64_t count = std::int64_t{times} * tiles.size();
    const auto extra = static_cast<int>(count % multiprocessors);
    if (count < multiprocessors || extra == 0) return {};
    // What the other SMs wait for, at most, if no shorter tile fills the gap.
    const std::int64_t idle = std::int64_t{tiles.back().all} * (multiprocessors - extra);
    const std::int64_t least = least_end(tiles, times, multiprocessors);
    if (idle / multiprocessors < least / 16) return {};
    const std::size_t last = device::divide_up(extra, times);
    const std::size_t whole = tiles.size() - last;
    Schedule before(multiprocessors);
    for (std::size_t index = 0; index < whole; ++index) before.add(tiles[index].all, times);
    const auto end = [&](int parts) {
        Schedule schedule = before;
        for (std::size_t index = whole; index < tiles.size(); ++index) {
            const int own = std::min(parts, tiles[index].full + 1);
            schedule.add(device::divide_up(tiles[index].all, own), own * times);
        }
        return schedule.last();
    };
    Tail tail;
    std::int64_t best = worth(end(1)) - kTailMergeCost;
    if (best <= least) return {};
    for (int parts = 2; parts <= 8; ++parts) {
        const std::int64_t sooner = end(parts);
        if (sooner < best) {
            best = sooner;
            tail = {last, parts};
        }
    }
    return tail;
}

}  // namespace

std::vector<Tile> cut_tiles(const Sequences& sequences, int tile_rows) {
    std::vector<Tile> tiles = tiles_in_order(sequences, tile_rows);
    sort_longest_first(tiles);
    return tiles;
}

int heads_per_tile(const Sequences& sequences, const TileShape& tile, int group) {
    if (group == 1 || group > tile.rows) return 1;
    // Steps of a group.
    const auto steps = [&](int heads) {
        std::int64_t sum = 0;
        for (const Tile& cut : tiles_in_order(sequences, tile.rows / heads)) {
            sum += device::divide_up(cut.seen(), tile.keys) + kTileCost;
        }
        return sum * (group / heads);
    };
    return steps(group) < steps(1) ? group : 1;
}

Work split_keys(std::vector<Tile> tiles, int times, int keys, int multiprocessors) {
    std::vector<Steps> steps;
    for (const Tile& tile : tiles) steps.push_back(steps_of(tile, keys));
    const int most = longest_part(steps, times, keys, multiprocessors);
    const Tail tail = most == 0 ? tail_of(steps, times, multiprocessors) : Tail();
    Work work;
    if (most == 0 && tail.tiles == 0) {
        work.tiles = std::move(tiles);
        return work;
    }
    for (std::size_t index = 0; index < tiles.size(); ++index) {
        const Tile& tile = tiles[index];
        const auto& [all, full] = steps[index];
        const bool last = index + tail.tiles >= tiles.size();
        const int parts = most > 0 ? parts_of(steps[index], most)
                          : last   ? std::min(tail.parts, full + 1)
                                   : 1;
        if (parts == 1) {
            work.tiles.push_back(tile);
            continue;
        }
        work.merges.push_back({tile.first_row, tile.rows, work.part_rows, parts});
        // Even parts, unless too many steps of the last are not full.
        const auto begin = [&, all = all, full = full](int part) {
            const auto even = static_cast<int>(std::int64_t{all} * part / parts);
            return std::min(even, full - (parts - 1 - part)) * keys;
        };
        for (int part = 0; part < parts; ++part) {
            Tile own = tile;
            own.first_key += begin(part);
            if (part + 1 < parts) {
                own.visible = begin(part + 1) - begin(part);
                own.step = 0;
            } else {
                own.visible -= begin(part);
            }
            own.part_row = work.part_rows;
            work.part_rows += tile.rows;
            work.tiles.push_back(own);
        }
    }
    sort_longest_first(work.tiles);
    return work;
}

int kv_heads_at_once(const Work& work, const Cached& cached, int times, const Machine& machine) {
    // An SM of Blackwell does twice the products in a cycle, for which it needs twice the keys of a
    // tile, while its memory is less than twice as fast. Each half of L2 keeps copies of what the
    // other has read, so there is room for less than half of its 50 to 60 MiB, or 126. Hopper's
    // numbers were measured on an H200 with random batches, Blackwell's are counted.
    const bool hopper = machine.arch == Arch::kHopper;
    const std::int64_t room_bytes = hopper ? 20 << 20 : 40 << 20;
    const int rows_per_read = hopper ? 256 : 512;
    const int all = cached.kv_heads;
    if (cached.rows_per_read >= rows_per_read || !work.merges.empty()) return all;
    const auto fit = std::clamp<std::int64_t>(room_bytes / cached.head_bytes, 1, all);
    const int rounds = static_cast<int>(device::divide_up(all, fit));
    const int at_once = device::divide_up(all, rounds);
    // In keys: what an SM has of a head, and how long most SMs wait for the last heads' longest
    // tile.
    std::int64_t keys = 0;
    for (const Tile& tile : work.tiles) keys += tile.seen();
    const std::int64_t share = keys * times / machine.multiprocessors;
    const std::int64_t idle = work.tiles.front().seen() - at_once * share;
    return 12 * idle <= all * share ? at_once : all;
}

}  // namespace prefill
