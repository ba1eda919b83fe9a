// Every query is in exactly one tile and sees every key in exactly one part, long tiles come first,
// heads share tiles where that saves steps, and invalid shapes are rejected.
#include "Kernels/prefill/config.h"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "Kernels/device/testing.h"
#include "Kernels/prefill/work.h"

namespace {

using prefill::Arch;
using prefill::choose;
using prefill::cut_tiles;
using prefill::Sequences;
using prefill::split_keys;
using prefill::Tile;
using prefill::Work;
using testing::expect;
using testing::expect_refused;

constexpr prefill::Machine kHopper = {132, Arch::kHopper};
constexpr prefill::Machine kBlackwell = {148, Arch::kBlackwell};

void every_query_is_in_one_tile() {
    for (const bool causal : {true, false}) {
        for (const int tile_rows : {1, 38, 64, 128, 192}) {
            const Sequences sequences = {{0, 1, 1, 130, 642}, {0, 1, 6, 400, 1024}, causal};
            std::vector<int> seen(642, 0);
            for (const Tile& tile : cut_tiles(sequences, tile_rows)) {
                expect(tile.rows >= 1 && tile.rows <= tile_rows, "rows of a tile");
                for (int row = 0; row < tile.rows; ++row) {
                    const int place = tile.first_row + row;
                    ++seen[place];
                    int sequence = 0;
                    while (sequences.starts_q[sequence + 1] <= place) ++sequence;
                    const int queries =
                        sequences.starts_q[sequence + 1] - sequences.starts_q[sequence];
                    const int keys =
                        sequences.starts_kv[sequence + 1] - sequences.starts_kv[sequence];
                    const int query = place - sequences.starts_q[sequence];
                    const int visible = causal ? query + keys - queries + 1 : keys;
                    expect(tile.first_key == sequences.starts_kv[sequence], "first key");
                    expect(tile.visible + (causal ? row : 0) == visible, "visible keys");
                }
            }
            for (const int count : seen) expect(count == 1, "every query once");
        }
    }
}

void the_longest_come_first() {
    const std::vector<Tile> tiles = cut_tiles({{0, 1000, 1128}, {0, 1000, 9000}, true}, 128);
    expect(tiles.size() == 9, "tiles: " + std::to_string(tiles.size()));
    expect(tiles[0].first_row == 1000 && tiles[0].visible == 7873, "the cached prefix first");
    expect(tiles[1].first_row == 896 && tiles[1].rows == 104, "few rows that see most");
    expect(tiles.back().first_row == 0, "the start of a prompt last");
}

// A tile of 192 rows, 80 keys per step.
void heads_share_a_tile_where_that_takes_fewer_steps() {
    const auto shared = [](const Sequences& sequences, int group) {
        return prefill::heads_per_tile(sequences, {128, 192, 80}, group);
    };
    const Sequences follow_ups = {{0, 30, 60}, {0, 4000, 9000}, true};
    expect(shared(follow_ups, 4) == 4, "few queries each");
    expect(shared(follow_ups, 7) == 7, "a group that does not divide the tile");
    expect(shared(follow_ups, 1) == 1, "no group");
    expect(shared(follow_ups, 193) == 1, "a group larger than the tile");
    expect(shared({{0, 4096}, {0, 4096}, true}, 4) == 4, "less behind the causal mask");
    expect(shared({{0, 192}, {0, 4096}, false}, 4) == 1, "full tiles either way");
    expect(shared({{0, 192}, {0, 4096}, false}, 5) == 1, "190 rows of 192");
}

int longest(const std::vector<Tile>& tiles, int keys) {
    int most = 0;
    for (const Tile& tile : tiles) most = std::max(most, (tile.seen() + keys - 1) / keys);
    return most;
}

// Counts how often each query sees each of its keys, and holds merges against parts.
void check_parts(const std::vector<Tile>& whole, const Work& work, int keys) {
    std::map<int, std::vector<int>> seen;  // of a query, by key
    std::vector<int> part_rows(work.part_rows);
    const auto count = [&](const Tile& tile, int change) {
        for (int row = 0; row < tile.rows; ++row) {
            std::vector<int>& own = seen[tile.first_row + row];
            const int end = tile.first_key + tile.visible + tile.step * row;
            expect(end > tile.first_key, "every query sees a key");
            if (own.size() < static_cast<std::size_t>(end)) own.resize(end);
            for (int key = tile.first_key; key < end; ++key) own[key] += change;
        }
    };
    for (const Tile& tile : whole) count(tile, 1);
    for (const Tile& tile : work.tiles) {
        count(tile, -1);
        for (int row = 0; tile.part_row >= 0 && row < tile.rows; ++row) {
            ++part_rows.at(tile.part_row + row);
        }
    }
    for (const auto& [query, times] : seen) {
        for (const int left : times) expect(left == 0, "every key once");
    }
    for (const int times : part_rows) expect(times == 1, "a row per query of a part");
    int rows = 0, parts = 0;
    for (const prefill::Merge& merge : work.merges) {
        expect(merge.part_row == rows && merge.parts > 1, "parts in order");
        rows += merge.rows * merge.parts;
        parts += merge.parts;
    }
    expect(rows == work.part_rows, "rows of parts");
    expect(whole.size() - work.merges.size() + parts == work.tiles.size(), "all else is whole");
    // Either all that is long is shorter now, or only the last have parts.
    expect(work.merges.empty() || longest(work.tiles, keys) + 2 < longest(whole, keys) ||
               work.tiles[0].part_row < 0,
           "more saved than merging costs");
}

void keys_are_split_where_that_ends_sooner() {
    const auto merges = [](const Sequences& sequences, int times) {
        const std::vector<Tile> tiles = cut_tiles(sequences, 128);
        const Work work = split_keys(tiles, times, 128, 132);
        check_parts(tiles, work, 128);
        return work.merges.size();
    };
    expect(merges({{0, 16}, {0, 3000}, true}, 8) == 1, "few queries, many keys");
    expect(merges({{0, 16}, {0, 600}, true}, 8) == 0, "merging would take longer");
    expect(merges({{0, 16, 116}, {0, 3000, 3100}, true}, 8) == 1, "only the longest");
    expect(merges({{0, 2048}, {0, 2048}, true}, 32) == 0, "enough tiles");
    expect(merges({{0, 1000}, {0, 1000}, false}, 2) > 0, "a prompt of few heads");
    // 87 tiles for each of two groups of seven heads: parts would be written for longer than they
    // save.
    const std::vector<Tile> many = cut_tiles({{0, 2348}, {0, 2348}, true}, 27);
    expect(split_keys(many, 2, 80, 132).merges.empty(), "more is written than saved");
    // 172 tiles for each of four heads: 28 more than five for each of 132 SMs.
    const std::vector<Tile> uneven = cut_tiles({{0, 2048, 4096}, {0, 10240, 20480}, true}, 24);
    const Work tail = split_keys(uneven, 4, 80, 132);
    check_parts(uneven, tail, 80);
    expect(tail.merges.size() == 7 && tail.merges[0].parts >= 4, "the last wave");
    expect(split_keys(cut_tiles({{0, 4096}, {0, 4096}, true}, 48), 8, 80, 132).merges.empty(),
           "short tiles fill the last wave");
    // 132 SMs for eight times 256 steps: sixteen parts each.
    const Work work = split_keys(cut_tiles({{0, 16}, {0, 32768}, true}, 128), 8, 128, 132);
    expect(work.tiles.size() == 16, "parts: " + std::to_string(work.tiles.size()));
}

void random_batches_are_split_whole() {
    std::mt19937 random(11);
    for (int round = 0; round < 300; ++round) {
        Sequences sequences = {{0}, {0}, random() % 2 == 0};
        for (int sequence = 0, count = 1 + random() % 3; sequence < count; ++sequence) {
            const int queries = random() % 40;
            sequences.starts_q.push_back(sequences.starts_q.back() + queries);
            sequences.starts_kv.push_back(sequences.starts_kv.back() + queries + random() % 900);
        }
        const int keys = 16 << random() % 3, times = 1 + random() % 4, rows = 1 + random() % 24;
        const int multiprocessors = 1 + random() % 160;
        const auto tiles = [&]() -> std::vector<Tile> {
            try {
                return cut_tiles(sequences, rows);
            } catch (const std::invalid_argument&) {
                return {};
            }
        }();
        check_parts(tiles, split_keys(tiles, times, keys, multiprocessors), keys);
    }
}

// Of every card's number, of a slice's, and of an odd one.
void keys_are_split_whole_on_every_machine() {
    for (const int multiprocessors : {1, 4, 5, 7, 16, 132, 142, 148, 152, 160}) {
        for (const int times : {1, 2, 8}) {
            for (const int rows : {16, 128, 256}) {
                for (const Sequences& sequences : {Sequences{{0, 16}, {0, 9000}, true},
                                                   {{0, 16, 116}, {0, 3000, 3100}, true},
                                                   {{0, 300, 300, 1000}, {0, 300, 900, 1700}, true},
                                                   {{0, 700}, {0, 90}, false}}) {
                    const std::vector<Tile> tiles = cut_tiles(sequences, rows);
                    check_parts(tiles, split_keys(tiles, times, 128, multiprocessors), 128);
                }
            }
        }
    }
}

// Every tile of every list once, the longest of some lists before those of the next.
void lists_are_worked_on_in_turns() {
    for (const int tiles : {1, 3, 8}) {
        for (const int lists : {1, 2, 7, 8}) {
            for (int at_once = 1; at_once <= lists; ++at_once) {
                std::vector<int> counts(tiles * lists);
                prefill::Place last = {-1, 0};
                for (int index = 0; index < tiles * lists; ++index) {
                    const prefill::Place place = prefill::place_of(index, tiles, lists, at_once);
                    ++counts.at(place.tile * lists + place.list);
                    const int turn = place.list / at_once, before = last.list / at_once;
                    expect(turn > before || (turn == before && place.tile >= last.tile),
                           "lists in turns, and their tiles in order");
                    last = place;
                }
                for (const int count : counts) expect(count == 1, "every tile once");
                expect(prefill::place_of(tiles * lists, tiles, lists, at_once).tile < 0, "the end");
            }
        }
    }
}

// Heads of 192 and 128, bf16.
void heads_take_turns_where_memory_would_not_keep_up() {
    const auto at_once = [](const Sequences& sequences, int kv_heads, int group, int rows,
                            const prefill::Machine& machine = kHopper) {
        const Work work =
            split_keys(cut_tiles(sequences, rows), kv_heads * group, 128, machine.multiprocessors);
        const std::int64_t head_bytes = sequences.starts_kv.back() * std::int64_t{640};
        return prefill::kv_heads_at_once(work, {kv_heads, head_bytes, rows * group}, group,
                                         machine);
    };
    const Sequences prompt = {{0, 4096}, {0, 4096}, true};
    expect(at_once(prompt, 128, 1, 128) == 8, "sixteen times eight heads: 20 MiB");
    expect(at_once(prompt, 128, 1, 192) == 8, "a tall tile");
    expect(at_once(prompt, 130, 1, 128) == 8, "rounds as even as may be");
    expect(at_once(prompt, 8, 1, 128) == 8, "all fit");
    expect(at_once(prompt, 32, 4, 128) == 32, "heads of a group read the same keys");
    expect(at_once({{0, 512}, {0, 512}, true}, 128, 1, 128) == 64, "half of them");
    expect(at_once({{0, 1328}, {0, 12130}, true}, 16, 1, 128) == 16,
           "an SM would wait for the last heads' longest tile");
    expect(at_once(prompt, 128, 1, 256) == 128, "two tiles of queries read the same keys");
    expect(at_once(prompt, 128, 1, 256, kBlackwell) == 16, "not enough of them");
    // More than fits: one at a time.
    expect(at_once({{0, 65536}, {0, 65536}, true}, 16, 1, 128) == 1, "a long prompt");
}

void refuses_batches_without_an_answer() {
    expect_refused([] { cut_tiles({{0, 5}, {0, 4}, true}, 128); }, "5 queries and 4 keys");
    expect(cut_tiles({{0, 5}, {0, 4}, false}, 128).size() == 1, "more queries without a mask");
    expect_refused([] { cut_tiles({{0, 5}, {0, 0}, false}, 128); }, "must see a key");
    expect_refused([] { cut_tiles({{0, 5, 3}, {0, 5, 8}, true}, 128); }, "sequence 1");
    expect_refused([] { cut_tiles({{0, 5}, {0}, true}, 128); },
                   "one more than the number of sequences");
    expect(cut_tiles({{0, 0}, {0, 7}, true}, 128).empty(), "no queries, no tiles");
}

void shapes_get_a_kernel_or_a_reason() {
    for (const int head_dim : {64, 128}) {
        const prefill::Config hopper = choose({4096, 1, 32, 8, head_dim, head_dim, 4096}, kHopper);
        const char* hopper_tile = head_dim == 64 ? "hopper 256x64" : "hopper 192x80";
        expect(describe(hopper) == hopper_tile, describe(hopper));
        const prefill::Config blackwell =
            choose({4096, 1, 32, 8, head_dim, head_dim, 4096}, kBlackwell);
        expect(describe(blackwell) == "blackwell 256x128", describe(blackwell));
        const prefill::Config other =
            choose({4096, 1, 32, 8, head_dim, head_dim, 4096}, kHopper.portable());
        const char* right = head_dim == 64 ? "portable 128x64" : "portable 128x48";
        expect(describe(other) == right, describe(other));
    }
    expect_refused([] { choose({1, 1, 1, 1, 96, 96, 1}, kHopper); }, "head_dim is 96");
    expect_refused([] { choose({1, 1, 1, 1, 128, 64, 1}, kHopper); },
                   "head_dim is 128 and value_dim 64; heads of 64, 128 and 256 are supported");
    expect_refused([] { choose({1, 1, 3, 2, 64, 64, 1}, kHopper); }, "heads is 3");
    expect_refused([] { choose({0, 1, 2, 2, 64, 64, 1}, kHopper); }, "queries is 0");
}

void hoppers_tile_follows_from_the_work() {
    const auto tile = [](std::int64_t queries, int head_dim, int keys) {
        return describe(choose({queries, 1, 32, 8, head_dim, head_dim, keys}, kHopper));
    };
    expect(tile(132, 128, 4096) == "hopper 128x128", "too few for 192 rows");
    expect(tile(4096, 128, 4096) == "hopper 192x80", "tiles for every SM");
    expect(tile(132, 64, 2048) == "hopper 128x128", "too few for more rows");
    expect(tile(1024, 64, 1024) == "hopper 192x128", "more tiles of fewer rows");
    expect(tile(4096, 64, 4096) == "hopper 256x64", "under the mask less of a last step is empty");
    expect(tile(8192, 64, 8192) == "hopper 192x128", "many keys");
}

// The longest tile ends last if there are few.
void few_tiles_are_low_under_the_causal_mask() {
    const auto rows = [](int queries, int heads, int kv_heads, bool causal) {
        return choose({queries, 1, heads, kv_heads, 128, 128, queries, causal}, kHopper).tile.rows;
    };
    expect(rows(5483, 6, 1, true) == 128, "a tall tile takes longer than an SM's share");
    expect(rows(5483, 6, 1, false) == 192, "all tiles are as long");
    expect(rows(5483, 12, 1, true) == 192, "tiles enough");
}

// Rows that a sequence leaves empty cost as much as others.
void short_sequences_take_low_tiles() {
    const auto rows = [](int queries, int heads, int kv_heads, int keys) {
        constexpr int kSequences = 64;
        const std::int64_t all = std::int64_t{kSequences} * queries;
        return choose({all, kSequences, heads, kv_heads, 128, 128, keys}, kHopper).tile.rows;
    };
    expect(rows(110, 16, 8, 110) == 128, "less than a low tile");
    expect(rows(250, 16, 16, 250) == 128, "two low tiles, as many as tall ones");
    expect(rows(190, 16, 16, 190) == 192, "a tall tile");
    expect(rows(48, 32, 8, 4096) == 192, "four heads fill a tall tile");
    expect(rows(2048, 32, 8, 2048) == 192, "long");
}

void larger_heads() {
    const auto tile = [](std::int64_t queries, int head_dim, int value_dim,
                         const prefill::Machine& machine) {
        return describe(choose({queries, 1, 32, 8, head_dim, value_dim, 4096}, machine));
    };
    for (const std::int64_t queries : {1, 65536}) {
        expect(tile(queries, 192, 128, kHopper) == "hopper 128x128", "192 and 128");
        expect(tile(queries, 256, 256, kHopper) == "hopper 128x80", "256");
        expect(tile(queries, 192, 128, kBlackwell) == "blackwell 256x128", "192 and 128");
        expect(tile(queries, 256, 256, kBlackwell) == "blackwell 128x128", "256");
        const prefill::Machine portable = kHopper.portable();
        expect(tile(queries, 192, 128, portable) == "portable 128x32", "192 and 128");
        expect(tile(queries, 256, 256, portable) == "portable 64x32", "256");
    }
}

// Measured in the suite `small` on an H200.
void few_keys_of_small_heads_take_the_portable_kernel() {
    const auto arch = [](int head_dim, int keys) {
        return choose({4096, 1, 8, 8, head_dim, head_dim, keys}, kHopper).arch;
    };
    expect(arch(64, 128) == Arch::kPortable, "128 keys");
    expect(arch(64, 129) == Arch::kHopper, "more keys");
    expect(arch(128, 128) == Arch::kHopper, "heads of 128");
}

}  // namespace

int main() {
    every_query_is_in_one_tile();
    the_longest_come_first();
    heads_share_a_tile_where_that_takes_fewer_steps();
    keys_are_split_where_that_ends_sooner();
    random_batches_are_split_whole();
    keys_are_split_whole_on_every_machine();
    lists_are_worked_on_in_turns();
    heads_take_turns_where_memory_would_not_keep_up();
    refuses_batches_without_an_answer();
    shapes_get_a_kernel_or_a_reason();
    hoppers_tile_follows_from_the_work();
    few_tiles_are_low_under_the_causal_mask();
    short_sequences_take_low_tiles();
    larger_heads();
    few_keys_of_small_heads_take_the_portable_kernel();
    std::puts("config: all checks passed");
    return 0;
}
