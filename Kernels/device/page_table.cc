#include "Kernels/device/page_table.h"

namespace device {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

}  // namespace

void validate(const PageTable& table, const PagedCache& cache) {
    require(table.indptr[0] == 0 && table.indptr[cache.batch] == table.entries,
            "page table: offsets run from " + number(table.indptr[0]) + " to " +
                number(table.indptr[cache.batch]) + "; they must run from 0 to " +
                number(table.entries) + ", the number of entries");
    for (int sequence = 0; sequence < cache.batch; ++sequence) {
        const std::int64_t length = table.lengths[sequence];
        const std::int64_t pages =
            static_cast<std::int64_t>(table.indptr[sequence + 1]) - table.indptr[sequence];
        if (length < 0 || pages != (length + cache.page_size - 1) / cache.page_size) {
            refuse("page table: sequence " + number(sequence) + " of " + number(length) +
                   " tokens has " + number(pages) + " pages of " + number(cache.page_size));
        }
    }
    for (std::int64_t entry = 0; entry < table.entries; ++entry) {
        const std::int32_t page = table.indices[entry];
        if (page < 0 || page >= cache.pool_pages) {
            refuse("page table: entry " + number(entry) + " names page " + number(page) +
                   "; the pool has " + number(cache.pool_pages));
        }
    }
}

}  // namespace device
