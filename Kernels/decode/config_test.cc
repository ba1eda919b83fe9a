#include "Kernels/decode/config.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "Kernels/device/testing.h"

namespace {

using namespace decode;
using testing::expect;
using testing::expect_refused;

constexpr Machine kH200 = {132, Arch::kPortable};
constexpr Machine kB200 = {148, Arch::kBlackwell};

Shape llama() { return {2, 1, 32, 8, 128, 16, 100}; }

struct Table {
    std::vector<std::int32_t> indptr = {0, 3, 4}, indices = {5, 9, 0, 99}, lengths = {40, 7};
    PageTable view() const { return device::page_table(lengths.size(), indptr, indices, lengths); }
};

void configs() {
    Config config = choose(llama(), kH200);
    expect(config.row_tiles == 1 && config.row_blocks == 1 && config.tile_tokens == 16, "llama");
    Shape shape = llama();
    shape.q_len = 8;
    config = choose(shape, kH200);
    expect(config.row_tiles == 2 && config.row_blocks == 1, "32 rows in two tiles");
    shape.heads = 64;
    expect(choose(shape, kH200).row_blocks == 2, "64 rows in two blocks of two tiles");
    shape = llama();
    shape.head_dim = 64;
    expect(choose(shape, kH200).tile_tokens == 32, "narrow heads, longer tiles");
    shape.cache_bytes = 1;
    expect(choose(shape, kH200).tile_tokens == 32, "a lane for each token of narrow heads of FP8");
    shape = llama();
    shape.cache_bytes = 1;
    expect(choose(shape, kH200).tile_tokens == 32, "FP8, longer tiles");
    shape.q_len = 8;
    expect(choose(shape, kH200).tile_tokens == 16,
           "two tiles of rows leave registers for 16 tokens");
    shape.head_dim = 256;
    for (const int cache_bytes : {1, 2}) {
        shape.cache_bytes = cache_bytes;
        config = choose(shape, kH200);
        expect(config.row_tiles == 1 && config.row_blocks == 2, "one tile of wide rows");
        expect(config.tile_tokens == 16 && config.warps == 4, "half of the warps, longer tiles");
    }
}

void blackwell_configs() {
    const auto expect_tiles = [](const Shape& shape, int row_tiles, int row_blocks,
                                 const std::string& name) {
        const Config config = choose(shape, kB200);
        expect(config.arch == Arch::kBlackwell && config.tile_tokens == 128, name);
        expect(config.row_tiles == row_tiles && config.row_blocks == row_blocks, name);
    };
    const auto expect_portable = [](const Shape& shape, const std::string& name) {
        expect(choose(shape, kB200).arch == Arch::kPortable, name);
    };
    Shape shape = llama();
    expect_tiles(shape, 1, 1, "llama");
    shape.page_size = 4;
    expect_portable(shape, "pages that break up a swizzle");
    shape.page_size = 16;
    shape.q_len = 5;
    expect_tiles(shape, 2, 1, "20 rows in two tiles");
    shape.q_len = 16;
    expect_tiles(shape, 4, 1, "64 rows in one block");
    shape.heads = 64;
    expect_tiles(shape, 4, 2, "128 rows in two");
    shape.cache_bytes = 1;
    expect_tiles(shape, 2, 4, "codes of queries take three times the columns");
    shape.head_dim = 64;
    expect_portable(shape, "the portable kernel reads short rows of codes less often");
    shape.q_len = 1;
    expect_tiles(shape, 1, 1, "but not for a few rows");
    shape.head_dim = 256;
    for (const int cache_bytes : {1, 2}) {
        shape.cache_bytes = cache_bytes;
        shape.heads = 16;
        expect_tiles(shape, 1, 1, "wide heads");
        shape.heads = 8 * 64;
        expect_tiles(shape, 2, 2, "of which a block has 32 rows at most");
    }
    shape.page_size = 4;
    expect_portable(shape, "wide heads in small pages");
}

void refused_shapes() {
    const std::vector<std::pair<std::function<void(Shape&)>, std::string>> cases = {
        {[](Shape& s) { s.head_dim = 96; }, "head_dim is 96; use 64, 128 or 256"},
        {[](Shape& s) { s.page_size = 24; }, "page_size is 24"},
        {[](Shape& s) { s.page_size = 0; }, "page_size is 0"},
        {[](Shape& s) { s.q_len = 17; }, "q_len is 17"},
        {[](Shape& s) { s.kv_heads = 5; }, "32 heads do not share 5"},
        {[](Shape& s) { s.batch = 0; }, "batch is 0"},
    };
    for (const auto& [change, words] : cases) {
        Shape shape = llama();
        change(shape);
        expect_refused([&] { choose(shape, kH200); }, words);
    }
}

void refused_tables() {
    Table table;
    table.lengths[1] = -1;
    expect_refused([&] { plan(llama(), table.view(), kH200); }, "sequence 1 of -1 tokens");
}

// A plan's segments cover every tile of every head of every sequence once, even if sequences are
// empty; every part has its own slot, next to the others of its item.
void expect_covered(const Plan& cut, const Shape& shape, const Table& table,
                    const Machine& machine) {
    // The first tile of every item, and one past the last.
    std::vector<std::size_t> first_tile = {0};
    for (const int length : table.lengths) {
        const int tiles = (length + cut.config.tile_tokens - 1) / cut.config.tile_tokens;
        for (int head = 0; head < shape.kv_heads; ++head) {
            first_tile.push_back(first_tile.back() + tiles);
        }
    }
    std::vector<bool> covered(first_tile.back());
    std::map<int, std::vector<Segment>> items;
    std::set<int> slots;
    for (int share = 0; share < cut.shares; ++share) {
        for (int number = cut.first_segment(share); number >= 0;) {
            const Segment segment = cut.segment(number);
            number = segment.next;
            items[segment.item].push_back(segment);
            expect(segment.item == segment.sequence * shape.kv_heads + segment.kv_head, "items");
            expect(segment.length == table.lengths[segment.sequence], "its length");
            expect(segment.page_begin == table.indptr[segment.sequence], "its pages");
            const std::size_t first = first_tile[segment.item];
            bool is_new =
                segment.tile_begin >= 0 && first + segment.tile_end <= first_tile[segment.item + 1];
            for (int tile = segment.tile_begin; is_new && tile < segment.tile_end; ++tile) {
                is_new = !covered[first + tile];
                covered[first + tile] = true;
            }
            expect(is_new, "tiles of its own, none twice");
        }
    }
    expect(std::find(covered.begin(), covered.end(), false) == covered.end(), "all tiles");
    expect(items.size() == static_cast<std::size_t>(shape.batch) * shape.kv_heads, "all items");
    expect(cut.items == static_cast<int>(items.size()), "as many items");
    for (const auto& [item, parts] : items) {
        for (std::size_t part = 0; part < parts.size(); ++part) {
            expect(parts[part].parts == static_cast<int>(parts.size()), "parts of an item");
            if (parts.size() == 1) {
                expect(parts[part].slot == -1, "no slot for the only part");
                continue;
            }
            expect(parts[part].slot == parts[part].first_slot + static_cast<int>(part),
                   "consecutive slots per item");
            expect(parts[part].slot < cut.slots && slots.insert(parts[part].slot).second,
                   "slots in range, none twice");
        }
    }
    const bool is_blackwell = cut.config.arch == Arch::kBlackwell;
    expect(is_blackwell
               ? cut.blocks <= std::max(machine.multiprocessors, cut.config.row_blocks)
               : cut.blocks * cut.block_warps <= machine.multiprocessors * cut.config.warps,
           "one wave");
    expect(cut.blocks >= 1 && cut.blocks % cut.cluster_blocks == 0, "whole clusters");
    expect(is_blackwell || cut.blocks * cut.block_warps >= cut.teams() * cut.team_warps,
           "a block for every team");
    expect(describe(cut).find("slots") != std::string::npos, "described");
}

Table table_of(const std::vector<int>& lengths, int page_size) {
    Table table;
    table.lengths.assign(lengths.begin(), lengths.end());
    table.indptr = {0};
    for (const int length : lengths) {
        table.indptr.push_back(table.indptr.back() + (length + page_size - 1) / page_size);
    }
    table.indices.assign(table.indptr.back(), 3);
    return table;
}

Plan equal_plan(int batch, int length, int kv_heads, const Machine& machine = kH200,
                int head_dim = 128) {
    const Shape shape = {batch, 1, 4 * kv_heads, kv_heads, head_dim, 16, 4};
    const Table table = table_of(std::vector<int>(batch, length), 16);
    const Plan cut = plan(shape, table.view(), machine);
    expect_covered(cut, shape, table, machine);
    return cut;
}

void plans_cover(const Machine& machine) {
    for (const auto& [q_len, head_dim] : {std::pair{1, 128}, {8, 128}, {1, 256}, {8, 256}}) {
        for (const int kv_heads : {1, 2, 3, 8, 32, 40}) {
            Shape shape = llama();
            shape.head_dim = head_dim;
            shape.heads = 2 * kv_heads;
            shape.kv_heads = kv_heads;
            shape.batch = 5;
            shape.q_len = q_len;
            const Table table = table_of({0, 1, 70000, 16, 0}, shape.page_size);
            expect_covered(plan(shape, table.view(), machine), shape, table, machine);
        }
    }
    for (const int batch : {1, 2, 3, 7, 16, 17, 19, 33, 130, 150, 300}) {
        for (const int length : {0, 1, 15, 16, 17, 100, 1000, 4097}) {
            for (const int kv_heads : {1, 4, 8}) {
                for (const int head_dim : {128, 256}) {
                    equal_plan(batch, length, kv_heads, machine, head_dim);
                }
            }
        }
    }
}

// Whole blocks for few sequences, to keep the parts few; single warps for many, to have none.
void teams() {
    struct Case {
        int batch, length, warps;
        bool is_cut;
    };
    for (const Case& c :
         {Case{1, 65536, 8, true}, Case{8, 8192, 8, true}, Case{16, 8192, 8, false},
          Case{32, 4096, 4, false}, Case{64, 2048, 4, false}, Case{256, 1024, 1, false}}) {
        const Plan cut = equal_plan(c.batch, c.length, 8);
        const std::string name = "batch " + std::to_string(c.batch);
        expect(cut.team_warps == c.warps, name + ": warps per team");
        expect((cut.slots > 0) == c.is_cut, name + ": parts");
        expect(cut.blocks * cut.block_warps >= 128 * kWarps, name + ": blocks");
    }
    const Plan wide = equal_plan(1, 65536, 8, kH200, 256);
    expect(wide.team_warps == 4 && wide.blocks == 128, "wide heads: a block is half the warps");
}

// Parts of an item in a cluster, if few SMs are idle then and all clusters run at once.
void clusters() {
    struct Case {
        int batch, kv_heads, blocks;
    };
    for (const Case& c : {Case{16, 1, 8}, Case{2, 8, 8}, Case{32, 1, 4}, Case{64, 1, 2},
                          Case{37, 1, 1}, Case{1, 8, 1}, Case{148, 1, 1}}) {
        const Plan cut = equal_plan(c.batch, 8192, c.kv_heads, kB200);
        const std::string name =
            "batch " + std::to_string(c.batch) + ", heads " + std::to_string(c.kv_heads);
        expect(cut.cluster_blocks == c.blocks, name);
        expect(c.blocks == 1 || cut.even.parts.value == c.blocks, name + ": parts");
    }
}

// One sequence with many rows per head: half the blocks, so that half the parts are merged.
void few_parts_for_many_rows() {
    const Table table = table_of({32768}, 16);
    Shape shape = {1, 1, 64, 4, 128, 16, 4};
    expect(plan(shape, table.view(), kH200).blocks == 64, "16 rows per head");
    shape.heads = 28;
    expect(plan(shape, table.view(), kH200).blocks == 132, "7 rows per head");
    shape.heads = 16;
    shape.kv_heads = 1;
    expect(plan(shape, table.view(), kH200).blocks >= 64, "a single head");
}

// Of heads that are cut alike the list has one, unless too many teams would be idle.
void heads_alike() {
    const Table table = table_of({5000, 3000, 70, 9000}, 16);
    const auto alike = [&](int kv_heads) {
        const Shape shape = {4, 1, kv_heads, kv_heads, 128, 16, 9000};
        const Plan cut = plan(shape, table.view(), kH200);
        expect_covered(cut, shape, table, kH200);
        return cut.list.heads.value;
    };
    expect(alike(8) == 8 && alike(4) == 4 && alike(3) == 3, "whole shares");
    expect(alike(40) == 1 && alike(100) == 1,
           "shares of six teams and a half, or of two and a half");
}

// One long sequence among many short ones is not split into single-warp parts.
void few_parts_of_the_longest() {
    Shape shape = {256, 1, 32, 8, 128, 16, 9000};
    std::vector<int> lengths(256, 16);
    lengths.back() = 131072;
    const Table table = table_of(lengths, 16);
    expect(plan(shape, table.view(), kH200).team_warps == 8, "whole blocks");
}

}  // namespace

int main() {
    configs();
    blackwell_configs();
    refused_shapes();
    refused_tables();
    for (const int count : {1, 5, 16, 132, 148, 152, 160}) {
        for (const Arch arch : {Arch::kPortable, Arch::kBlackwell}) plans_cover({count, arch});
    }
    teams();
    clusters();
    few_parts_for_many_rows();
    few_parts_of_the_longest();
    heads_alike();
    std::puts("ok");
}
