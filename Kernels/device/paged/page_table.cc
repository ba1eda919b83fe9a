#include "Kernels/device/paged/page_table.h"

#include <functional>
#include <numeric>

#include "Kernels/device/integers.h"

namespace device {

int PagedCache::page_shift() const {
    int shift = 0;
    while (1 << shift < page_size) ++shift;
    return shift;
}

void validate(const PagedCache& cache, int q_len) {
    const int page_size = cache.page_size;
    require(page_size > 0 && (page_size & (page_size - 1)) == 0 && page_size <= 1024,
            "page_size is ", page_size, "; use a power of two up to 1024");
    require(cache.batch > 0, "batch is ", cache.batch, "; use at least 1");
    require(q_len >= 1 && q_len <= kMostNewTokens, "q_len is ", q_len, "; use 1 to ",
            kMostNewTokens);
}

void validate(const PageTable& table, const PagedCache& cache) {
    require(table.indptr[0] == 0 && table.indptr[cache.batch] == table.entries,
            "page table: offsets run from ", table.indptr[0], " to ", table.indptr[cache.batch],
            "; they must run from 0 to ", table.entries, ", the number of entries");
    for (int sequence = 0; sequence < cache.batch; ++sequence) {
        const std::int64_t length = table.lengths[sequence];
        const std::int64_t pages =
            static_cast<std::int64_t>(table.indptr[sequence + 1]) - table.indptr[sequence];
        require(length >= 0 && pages == divide_up(length, cache.page_size), "page table: sequence ",
                sequence, " of ", length, " tokens has ", pages, " pages of ", cache.page_size);
    }
}

void validate_pages(const PageTable& table, const PagedCache& cache) {
    // The sign of a page, and of its distance from the last one, tells whether it is outside.
    // Tables are long, and a loop without a way out, in blocks of a known length, is vectorised.
    constexpr int kBlock = 16;
    const auto last = static_cast<std::uint32_t>(cache.pool_pages) - 1;
    std::uint32_t signs[kBlock] = {};
    const auto look_at = [&](std::int64_t entry, std::uint32_t& sign) {
        const auto page = static_cast<std::uint32_t>(table.indices[entry]);
        sign |= page | (last - page);
    };
    std::int64_t start = 0;
    for (; start + kBlock <= table.entries; start += kBlock) {
        for (int i = 0; i < kBlock; ++i) look_at(start + i, signs[i]);
    }
    for (; start < table.entries; ++start) look_at(start, signs[0]);
    const std::uint32_t all = std::accumulate(signs, signs + kBlock, 0u, std::bit_or<>());
    if (all >> 31 == 0) return;
    for (std::int64_t entry = 0; entry < table.entries; ++entry) {
        const std::int32_t page = table.indices[entry];
        require(page >= 0 && page < cache.pool_pages, "page table: entry ", entry, " names page ",
                page, "; the pool has ", cache.pool_pages);
    }
}

}  // namespace device
