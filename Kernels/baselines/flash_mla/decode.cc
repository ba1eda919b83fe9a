#include "Kernels/baselines/flash_mla/decode.h"

#include <stdexcept>

#include "Kernels/device/require.h"

namespace flash_mla {

// In decode_sm90.cc.
std::unique_ptr<Planned> plan_sm90(const Step& step, const Tensors& tensors,
                                   const PageTable& table);

bool is_built() {
#ifdef FLASH_MLA_SM90A
    return true;
#else
    return false;
#endif
}

namespace {

void check(const Step& step, const PageTable& table) {
    using device::require;
    require(step.batch >= 1 && step.q_len >= 1 && step.heads >= 1 && step.pool_pages >= 1,
            step.batch, " sequences, ", step.q_len, " new tokens, ", step.heads, " heads and ",
            step.pool_pages, " pages; FlashMLA needs at least one of each");
    const auto batch = static_cast<std::size_t>(step.batch);
    require(table.lengths.size() == batch && table.indptr.size() == batch + 1 &&
                static_cast<std::size_t>(table.indptr.back()) == table.indices.size(),
            "a table of ", table.lengths.size(), " lengths, ", table.indptr.size(), " offsets and ",
            table.indices.size(), " pages for ", batch, " sequences");
    for (std::size_t i = 0; i < batch; ++i) {
        const std::int64_t pages = std::int64_t{table.indptr[i + 1]} - table.indptr[i];
        const std::int64_t length = table.lengths[i];
        require(length >= 0 && pages == (length + kPageSize - 1) / kPageSize, "sequence ", i,
                " of ", length, " tokens has ", pages, " pages of ", kPageSize);
        require(step.q_len == 1 || length >= step.q_len, "sequence ", i, " has ", length,
                " tokens, fewer than its ", step.q_len, " new ones");
    }
    for (const std::int32_t page : table.indices) {
        require(page >= 0 && page < step.pool_pages, "page ", page, " of a pool of ",
                step.pool_pages);
    }
}

}  // namespace

std::unique_ptr<Planned> plan(const Step& step, const Tensors& tensors, const PageTable& table) {
    check(step, table);
#ifdef FLASH_MLA_SM90A
    return plan_sm90(step, tensors, table);
#else
    static_cast<void>(tensors);
    throw std::logic_error("FlashMLA is not in this build; build with --config=sm90a");
#endif
}

}  // namespace flash_mla
