#include "Kernels/device/paged/page_table.h"

#include <functional>
#include <utility>
#include <vector>

#include "Kernels/device/testing.h"

namespace {

constexpr device::PagedCache kCache = {/*batch=*/2, /*page_size=*/16, /*pool_pages=*/100};

struct Table {
    std::vector<std::int32_t> indptr = {0, 3, 4}, indices = {5, 9, 0, 99}, lengths = {40, 7};

    void validate() const {
        const auto table = device::page_table(kCache.batch, indptr, indices, lengths);
        device::validate(table, kCache);
        device::validate_pages(table, kCache);
    }
};

void bad_tables_are_refused() {
    const std::vector<std::pair<std::function<void(Table&)>, std::string>> cases = {
        {[](Table& t) { t.indices[1] = 100; }, "entry 1 names page 100; the pool has 100"},
        {[](Table& t) { t.indices[3] = -1; }, "entry 3 names page -1"},
        {[](Table& t) { t.lengths[0] = 49; }, "sequence 0 of 49 tokens has 3 pages of 16"},
        {[](Table& t) { t.lengths[1] = -1; }, "sequence 1 of -1 tokens"},
        {[](Table& t) { t.indptr[1] = -2; }, "sequence 0 of 40 tokens has -2 pages"},
        {[](Table& t) { t.indptr[2] = 5; }, "from 0 to 5"},
        {[](Table& t) { t.indptr.pop_back(); }, "2 offsets and 2 lengths for a batch of 2"},
        {[](Table& t) { t.lengths.push_back(1); }, "3 offsets and 3 lengths for a batch of 2"},
    };
    for (const auto& [change, words] : cases) {
        Table table;
        change(table);
        testing::expect_refused([&] { table.validate(); }, words);
    }
}

}  // namespace

int main() {
    Table().validate();
    bad_tables_are_refused();
    std::puts("ok");
}
