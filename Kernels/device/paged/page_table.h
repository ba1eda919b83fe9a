// The page table of a paged cache, as the host knows it: pure host code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "Kernels/device/require.h"

namespace device {

struct PagedCache {
    // Sequences.
    int batch;
    // Tokens per page.
    int page_size;
    // Pages in the pool.
    int pool_pages;

    // Shift from a position to its page number.
    int page_shift() const;
};

// Most new tokens per sequence.
constexpr int kMostNewTokens = 16;

// Throws std::invalid_argument, naming the value, for sizes that no paged kernel supports.
void validate(const PagedCache& cache, int q_len);

struct PageTable {
    // Entries of sequence s: indptr[s] to indptr[s + 1].
    const std::int32_t* indptr;
    const std::int32_t* indices;
    const std::int32_t* lengths;
    std::int64_t entries;
};

// From lists with data() and size(). Throws std::invalid_argument if they do not fit the batch.
template <class List>
PageTable page_table(std::size_t batch, const List& indptr, const List& indices,
                     const List& lengths) {
    require(indptr.size() == batch + 1 && lengths.size() == batch, "page table: ", indptr.size(),
            " offsets and ", lengths.size(), " lengths for a batch of ", batch);
    return {indptr.data(), indices.data(), lengths.data(),
            static_cast<std::int64_t>(indices.size())};
}

// Throws std::invalid_argument, naming the sequence, for offsets that do not fit the lengths.
void validate(const PageTable& table, const PagedCache& cache);

// The same, naming the entry, for one that must not be read through. A server's allocator vouches
// for its pages; who cannot know checks a table once, not in every step.
void validate_pages(const PageTable& table, const PagedCache& cache);

}  // namespace device
