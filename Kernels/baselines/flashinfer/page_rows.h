// Page tables for the sm_100a kernels, with one row of pages per sequence, and latent attention
// over such tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "Kernels/baselines/flashinfer/planned.h"
#include "Kernels/device/launch.h"

namespace fi {

// Page p of sequence s is indices[indptr[s] + p].
struct PageTable {
    const std::int32_t* lengths;  // of sequences, on the device
    std::vector<std::int32_t> lengths_on_host;
    std::vector<std::int32_t> indptr_on_host;
    std::vector<std::int32_t> indices_on_host;
    std::uint32_t page_size;
    std::uint32_t pool_pages;
};

// A cached token is one row of 576, the latent part of 512 before the rotary part of 64, and so is
// a query of [batch, q_len, heads, 576]; bf16.
struct JoinedMla {
    const void* q;
    const void* cache;
    void* out;  // [batch, q_len, heads, 512]
    PageTable pages;
    std::uint32_t q_len;
    std::uint32_t heads;
    float scale;
};

// The largest difference of neighbours.
inline int longest(const std::vector<std::int32_t>& starts) {
    int most = 0;
    for (std::size_t i = 1; i < starts.size(); ++i) {
        most = std::max(most, starts[i] - starts[i - 1]);
    }
    return most;
}

// Rows of `width` pages. Entries beyond a sequence's end are page 0, which exists.
inline std::vector<std::int32_t> page_rows(const PageTable& pages, std::size_t width) {
    const std::vector<std::int32_t>& starts = pages.indptr_on_host;
    std::vector<std::int32_t> rows((starts.size() - 1) * width);
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        std::copy(pages.indices_on_host.begin() + starts[i],
                  pages.indices_on_host.begin() + starts[i + 1],
                  rows.begin() + static_cast<std::ptrdiff_t>(i * width));
    }
    return rows;
}

inline std::unique_ptr<DeviceMemory> on_device(const std::vector<std::int32_t>& numbers) {
    auto memory = std::make_unique<DeviceMemory>(numbers.size() * sizeof(std::int32_t));
    device::check(
        cudaMemcpy(memory->address(), numbers.data(), memory->bytes(), cudaMemcpyHostToDevice),
        "copy of a table");
    return memory;
}

}  // namespace fi
