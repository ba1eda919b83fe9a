#include "Kernels/decode/config.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <tuple>

#include "Kernels/device/testing.h"

namespace {

using namespace decode;
using testing::expect;
using testing::expect_refused;

Shape llama() { return {2, 1, 32, 8, 128, 16, 100}; }

struct Table {
    std::vector<std::int32_t> indptr = {0, 3, 4}, indices = {5, 9, 0, 99}, lengths = {40, 7};
    PageTable view() const { return device::page_table(lengths.size(), indptr, indices, lengths); }
};

void configs() {
    Config config = choose(llama());
    expect(config.row_tiles == 1 && config.row_blocks == 1 && config.tile_tokens == 16, "llama");
    Shape shape = llama();
    shape.q_len = 8;
    config = choose(shape);
    expect(config.row_tiles == 2 && config.row_blocks == 1, "32 rows in two tiles");
    shape.heads = 64;
    expect(choose(shape).row_blocks == 2, "64 rows in two blocks of two tiles");
    shape = llama();
    shape.head_dim = 64;
    expect(choose(shape).tile_tokens == 32, "narrow heads, longer tiles");
    shape.cache_bytes = 1;
    expect(choose(shape).tile_tokens == 32, "a lane for each token of narrow heads of FP8");
    shape = llama();
    shape.cache_bytes = 1;
    expect(choose(shape).tile_tokens == 32, "FP8, longer tiles");
    shape.q_len = 8;
    expect(choose(shape).tile_tokens == 16, "two tiles of rows leave registers for 16 tokens");
}

void refused_shapes() {
    const std::vector<std::pair<std::function<void(Shape&)>, std::string>> cases = {
        {[](Shape& s) { s.head_dim = 96; }, "head_dim is 96; use 64 or 128"},
        {[](Shape& s) { s.page_size = 24; }, "page_size is 24"},
        {[](Shape& s) { s.page_size = 0; }, "page_size is 0"},
        {[](Shape& s) { s.q_len = 17; }, "q_len is 17"},
        {[](Shape& s) { s.kv_heads = 5; }, "32 heads do not share 5"},
        {[](Shape& s) { s.batch = 0; }, "batch is 0"},
    };
    for (const auto& [change, words] : cases) {
        Shape shape = llama();
        change(shape);
        expect_refused([&] { choose(shape); }, words);
    }
}

void refused_tables() {
    Table table;
    table.indices[1] = 100;
    expect_refused([&] { plan(llama(), table.view(), 132); }, "entry 1 names page 100");
}

// Every tile of every head of every sequence once, also where sequences are empty.
void plans_cover() {
    for (const int q_len : {1, 8}) {
        Shape shape = llama();
        shape.batch = 5;
        shape.q_len = q_len;
        shape.pool_pages = 20000;
        Table table;
        table.lengths = {0, 1, 70000, 16, 0};
        table.indptr = {0};
        for (const int length : table.lengths) {
            table.indptr.push_back(table.indptr.back() + (length + 15) / 16);
        }
        table.indices.assign(table.indptr.back(), 3);
        const Plan cut = plan(shape, table.view(), 132);
        std::set<std::tuple<int, int, int>> seen;
        std::set<int> items;
        for (const Segment& segment : cut.segments) {
            items.insert(segment.item);
            expect(segment.item < cut.items, "items in range");
            expect(segment.slot < cut.slots, "slots in range");
            expect(segment.length == table.lengths[segment.sequence], "its length");
            expect(segment.page_begin == table.indptr[segment.sequence], "its pages");
            for (int tile = segment.tile_begin; tile < segment.tile_end; ++tile) {
                expect(seen.insert({segment.sequence, segment.kv_head, tile}).second,
                       "no tile twice");
            }
        }
        expect(seen.size() == 8u * (1 + 4375 + 1), "all tiles");
        expect(items.size() == 5u * 8u, "all items, the empty ones too");
        expect(cut.blocks() <= 264, "one wave");
        expect(describe(cut).find("slots") != std::string::npos, "described");
    }
}

// A single sequence of many rows a head: half the blocks, so that half the parts are merged.
void few_parts_for_many_rows() {
    Shape shape = {1, 1, 64, 4, 128, 16, 4000};
    Table table;
    table.lengths = {32768};
    table.indptr = {0, 2048};
    table.indices.assign(2048, 3);
    expect(plan(shape, table.view(), 132).blocks() <= 132, "16 rows a head");
    shape.heads = 16;
    expect(plan(shape, table.view(), 132).blocks() > 200, "4 rows a head");
}

}  // namespace

int main() {
    configs();
    refused_shapes();
    refused_tables();
    plans_cover();
    few_parts_for_many_rows();
    std::puts("ok");
}
