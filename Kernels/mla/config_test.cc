#include "Kernels/mla/config.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

namespace {

using namespace mla;

void check(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what.c_str());
    std::exit(1);
}

std::string refusal(const std::function<void()>& attempt) {
    try {
        attempt();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

constexpr Machine kHopper = {132, true};

Shape deepseek() { return {2, 1, 128, 16, 100}; }

struct Table {
    std::vector<std::int32_t> indptr = {0, 3, 4}, indices = {5, 9, 0, 99}, lengths = {40, 7};
    PageTable view() const {
        return {indptr.data(), indices.data(), lengths.data(),
                static_cast<std::int64_t>(indices.size())};
    }
};

void configs() {
    const std::vector<std::tuple<int, int, int, int>> cases = {
        // heads, new tokens, rows of a block, blocks
        {16, 1, 16, 1}, {8, 1, 16, 1},  {16, 2, 32, 1},  {16, 4, 64, 1},
        {64, 1, 64, 1}, {96, 1, 64, 2}, {128, 1, 64, 2}, {128, 4, 64, 8},
    };
    for (const auto& [heads, q_len, rows, row_blocks] : cases) {
        Shape shape = deepseek();
        shape.heads = heads;
        shape.q_len = q_len;
        const Config config = choose(shape, kHopper);
        check(config.rows == rows && config.row_blocks == row_blocks,
              std::to_string(heads) + " heads, " + std::to_string(q_len) + " tokens");
        check(config.rows * config.row_blocks >= heads * q_len, "all rows");
        const bool many = heads * q_len > 32;
        check((config.variant == Variant::k64RowsWarpgroups) == many, "warpgroups for many rows");
        const Config portable = choose(shape, {148, false});
        check(portable.variant != Variant::k64RowsWarpgroups && portable.rows == rows,
              "the same rows without warpgroups");
    }
}

void refused_shapes() {
    const std::vector<std::pair<std::function<void(Shape&)>, std::string>> cases = {
        {[](Shape& s) { s.page_size = 24; }, "page_size is 24"},
        {[](Shape& s) { s.q_len = 17; }, "q_len is 17"},
        {[](Shape& s) { s.heads = 0; }, "heads is 0"},
        {[](Shape& s) { s.heads = 257; }, "heads is 257"},
        {[](Shape& s) { s.batch = 0; }, "batch is 0"},
    };
    for (const auto& [change, words] : cases) {
        Shape shape = deepseek();
        change(shape);
        const std::string error = refusal([&] { choose(shape, kHopper); });
        check(contains(error, words), words + " in '" + error + "'");
    }
}

void refused_tables() {
    const std::vector<std::pair<std::function<void(Table&)>, std::string>> cases = {
        {[](Table& t) { t.indices[1] = 100; }, "entry 1 names page 100; the pool has 100"},
        {[](Table& t) { t.indices[3] = -1; }, "entry 3 names page -1"},
        {[](Table& t) { t.lengths[0] = 49; }, "sequence 0 of 49 tokens has 3 pages of 16"},
        {[](Table& t) { t.lengths[1] = -1; }, "sequence 1 of -1 tokens"},
        {[](Table& t) { t.indptr[1] = -2; }, "sequence 0 of 40 tokens has -2 pages"},
        {[](Table& t) { t.indptr[2] = 5; }, "from 0 to 5"},
    };
    check(refusal([] { plan(deepseek(), Table().view(), kHopper); }).empty(),
          "a good table is taken");
    for (const auto& [change, words] : cases) {
        Table table;
        change(table);
        const std::string error = refusal([&] { plan(deepseek(), table.view(), kHopper); });
        check(contains(error, words), words + " in '" + error + "'");
    }
}

// Every tile of every sequence once, also where sequences are empty; a merge for every split one.
void plans_cover() {
    for (const int heads : {16, 64, 128}) {
        Shape shape = deepseek();
        shape.batch = 5;
        shape.heads = heads;
        shape.pool_pages = 20000;
        Table table;
        table.lengths = {0, 1, 70000, 16, 0};
        table.indptr = {0};
        for (const int length : table.lengths) {
            table.indptr.push_back(table.indptr.back() + (length + 15) / 16);
        }
        table.indices.assign(table.indptr.back(), 3);
        const Plan cut = plan(shape, table.view(), kHopper);
        std::set<std::pair<int, int>> seen;
        std::vector<int> segments(5, 0);
        for (const Segment& segment : cut.segments) {
            ++segments[segment.sequence];
            check(segment.slot < cut.slots, "slots in range");
            check(segment.length == table.lengths[segment.sequence], "its length");
            check(segment.page_begin == table.indptr[segment.sequence], "its pages");
            for (int tile = segment.tile_begin; tile < segment.tile_end; ++tile) {
                check(seen.insert({segment.sequence, tile}).second, "no tile twice");
            }
        }
        const int tokens = cut.config.tokens;
        check(seen.size() == 2u + (70000 + tokens - 1) / tokens, "all tiles");
        check(*std::min_element(segments.begin(), segments.end()) == 1, "empty sequences too");
        check(cut.merges.size() == 1 && cut.merges[0].sequence == 2 &&
                  cut.merges[0].parts == segments[2] && cut.slots == segments[2],
              "the long one is merged");
        check(cut.blocks() <= 132 * cut.config.blocks_per_multiprocessor, "one wave");
        check(contains(describe(cut), "slots"), "described");
    }
}

}  // namespace

int main() {
    configs();
    refused_shapes();
    refused_tables();
    plans_cover();
    std::puts("ok");
}
