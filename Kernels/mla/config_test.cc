#include "Kernels/mla/config.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <tuple>

#include "Kernels/device/testing.h"

namespace {

using namespace mla;
using testing::expect;
using testing::expect_refused;

constexpr Machine kHopper = {132, Arch::kHopper};
constexpr Machine kBlackwell = {148, Arch::kBlackwell};

Shape deepseek() { return {2, 1, 128, 16, 100}; }

struct Table {
    std::vector<std::int32_t> indptr = {0, 3, 4}, indices = {5, 9, 0, 99}, lengths = {40, 7};
    PageTable view() const { return device::page_table(lengths.size(), indptr, indices, lengths); }
};

void configs() {
    const std::vector<std::tuple<int, int, int, int>> cases = {
        // heads, new tokens, rows per block, blocks
        {16, 1, 16, 1}, {8, 1, 16, 1},  {16, 2, 32, 1},  {16, 4, 64, 1},
        {64, 1, 64, 1}, {96, 1, 64, 2}, {128, 1, 64, 2}, {128, 4, 64, 8},
    };
    for (const auto& [heads, q_len, rows, row_blocks] : cases) {
        Shape shape = deepseek();
        shape.heads = heads;
        shape.q_len = q_len;
        const Config config = choose(shape, kHopper);
        expect(config.rows == rows && config.row_blocks == row_blocks,
               std::to_string(heads) + " heads, " + std::to_string(q_len) + " tokens");
        expect(config.rows * config.row_blocks >= heads * q_len, "all rows");
        const bool many = heads * q_len > 32;
        const Config portable = choose(shape, kBlackwell);
        expect(portable.rows == rows && portable.arch == Arch::kPortable &&
                   config.arch == Arch::kPortable,
               "small pages take the portable kernel");
        shape.page_size = 32;
        const Config hopper = choose(shape, kHopper);
        expect(hopper.arch == Arch::kHopper && hopper.rows == 64 && hopper.row_blocks == row_blocks,
               "larger ones take Hopper's kernel");
        const Config blackwell = choose(shape, kBlackwell);
        expect((blackwell.arch == Arch::kBlackwell) == many, "and many rows Blackwell's");
        expect(blackwell.cluster_blocks == (many ? 2 : 1), "which is a pair's");
        expect(blackwell.rows * blackwell.row_blocks >= heads * q_len, "all rows there too");
        expect(many || blackwell.tile == portable.tile, "any page for few rows");
        shape.cache_bytes = 1;
        const Config converted = choose(shape, kHopper);
        expect(converted.arch == Arch::kPortable && converted.tile == portable.tile,
               "FP8 caches take the portable kernel on Hopper");
        expect(choose(shape, kBlackwell).arch == blackwell.arch, "and the same on Blackwell");
    }
}

void refused_shapes() {
    const std::vector<std::pair<std::function<void(Shape&)>, std::string>> cases = {
        {[](Shape& s) { s.page_size = 24; }, "page_size is 24"},
        {[](Shape& s) { s.q_len = 17; }, "q_len is 17"},
        {[](Shape& s) { s.heads = 0; }, "heads is 0"},
        {[](Shape& s) { s.heads = 257; }, "heads is 257"},
        {[](Shape& s) { s.batch = 0; }, "batch is 0"},
        {[](Shape& s) { s.cache_bytes = 4; }, "have 4 bytes"},
    };
    for (const auto& [change, words] : cases) {
        Shape shape = deepseek();
        change(shape);
        expect_refused([&] { choose(shape, kHopper); }, words);
    }
}

void refused_tables() {
    Table table;
    table.lengths[1] = -1;
    expect_refused([&] { plan(deepseek(), table.view(), kHopper); }, "sequence 1 of -1 tokens");
}

// Covers every tile of every sequence once, even of empty ones, and merges every split one.
void plans_cover(int multiprocessors) {
    const Machine hopper = {multiprocessors, Arch::kHopper};
    const Machine blackwell = {multiprocessors, Arch::kBlackwell};
    for (const auto& [machine, page_size, heads] : {std::tuple{hopper, 16, 16},
                                                    {hopper, 16, 64},
                                                    {hopper, 16, 128},
                                                    {hopper, 64, 16},
                                                    {blackwell, 32, 64},
                                                    {blackwell, 64, 128}}) {
        Shape shape = deepseek();
        shape.batch = 5;
        shape.page_size = page_size;
        shape.heads = heads;
        shape.pool_pages = 20000;
        Table table;
        table.lengths = {0, 1, 70000, 16, 0};
        table.indptr = {0};
        for (const int length : table.lengths) {
            table.indptr.push_back(table.indptr.back() + (length + page_size - 1) / page_size);
        }
        table.indices.assign(table.indptr.back(), 3);
        const Plan cut = plan(shape, table.view(), machine);
        std::set<std::pair<int, int>> seen;
        std::vector<int> segments(5, 0);
        for (const Segment& segment : cut.segments) {
            ++segments[segment.sequence];
            expect(segment.slot < cut.slots, "slots in range");
            expect(segment.length == table.lengths[segment.sequence], "its length");
            expect(segment.page_begin == table.indptr[segment.sequence], "its pages");
            for (int tile = segment.tile_begin; tile < segment.tile_end; ++tile) {
                expect(seen.insert({segment.sequence, tile}).second, "no tile twice");
            }
        }
        const int tokens = cut.config.tokens;
        expect(seen.size() == 2u + (70000 + tokens - 1) / tokens, "all tiles");
        expect(*std::min_element(segments.begin(), segments.end()) == 1, "empty sequences too");
        const int resident = machine.multiprocessors * cut.config.blocks_per_multiprocessor;
        const int of_share = cut.config.row_blocks * cut.config.cluster_blocks;
        // One share has every sequence whole.
        const bool is_cut = resident >= 2 * of_share;
        expect(cut.merges.size() == (is_cut ? 1 : 0), "the long one is merged");
        expect(!is_cut || (cut.merges[0].sequence == 2 && cut.merges[0].parts == segments[2]),
               "of all its parts");
        expect(cut.slots == (is_cut ? segments[2] : 0), "a slot for each");
        expect(cut.blocks() <= std::max(resident, of_share), "one wave");
        expect(cut.blocks() % cut.config.cluster_blocks == 0, "whole clusters");
        expect(cut.first_segments.size() == static_cast<std::size_t>(cut.shares()),
               "every share has a first segment");
        for (int share = 0; share < cut.shares(); ++share) {
            const Segment& first = cut.first_segments[share];
            const Segment& listed = cut.segments[cut.share_begin[share]];
            expect(first.share_begin == cut.share_begin[share] &&
                       first.share_end == cut.share_begin[share + 1] &&
                       first.sequence == listed.sequence && first.tile_begin == listed.tile_begin &&
                       first.tile_end == listed.tile_end && first.slot == listed.slot,
                   "the first segment of its share");
        }
        expect(describe(cut).find("slots") != std::string::npos, "described");
    }
}

}  // namespace

int main() {
    configs();
    refused_shapes();
    refused_tables();
    for (const int count : {1, 2, 4, 5, 7, 16, 132, 142, 148, 152, 160}) plans_cover(count);
    std::puts("ok");
}
