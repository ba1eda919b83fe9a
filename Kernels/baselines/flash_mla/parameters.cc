#include "Kernels/baselines/flash_mla/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"

namespace flash_mla {
namespace {

using device::divide_up;

constexpr unsigned kScheduleThreads = 32;
constexpr unsigned kDecodeThreads = 256;
constexpr unsigned kCombineThreads = 256;
// A tile of queries, two of the cache and one of weights, bf16; five rows of statistics, f32; and
// 19 barriers, rounded up to 16 bytes.
constexpr unsigned kDecodeSharedBytes =
    2 * (3 * kTileRows * kDim + kTileRows * kPageSize) + 4 * 5 * kTileRows + 160;
static_assert(kDecodeSharedBytes == 0x385a0, "the library's host code asks for this");
// Heads per block of the combining kernel: one per warp.
constexpr int kCombineHeads = 8;
constexpr int kOverheadPages = 5;
constexpr int kBf16Bytes = 2;

int tiles(const Step& step) { return divide_up(step.rows(), kTileRows); }

// [batch, rows, columns], cut into boxes of one tile of rows and 128 bytes.
Boxes rows_boxes(const void* address, const Step& step, int columns, std::uint64_t head_stride) {
    const std::uint64_t row_bytes = std::uint64_t{kBf16Bytes} * columns;
    return {address,
            {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(step.rows()), 1,
             static_cast<std::uint64_t>(step.batch)},
            {row_bytes, kBf16Bytes * head_stride, row_bytes * step.rows()},
            {kBoxColumns, kTileRows, 1, 1}};
}

}  // namespace

int parts(const Step& step, int multiprocessors) {
    return std::max(multiprocessors / tiles(step), 1);
}

int partials(const Step& step, int parts) { return step.batch + parts; }

std::int64_t partial_elements(const Step& step, int parts) {
    return std::int64_t{partials(step, parts)} * step.rows() * kValueDim;
}

bool fits(const Step& step, int parts) {
    return partial_elements(step, parts) <= std::numeric_limits<std::int32_t>::max();
}

int most_splits(int parts) {
    constexpr int kStep = 32;
    constexpr int kMost = 256;
    device::require(parts >= 1 && parts <= kMost, parts,
                    " parts; FlashMLA's combining kernels take 1 to 256");
    return divide_up(parts, kStep) * kStep;
}

Launch schedule_launch(const Step& step) {
    const auto shared = static_cast<unsigned>(sizeof(std::int32_t)) * (3U * step.batch + 1);
    return {{1, 1, 1}, kScheduleThreads, shared, false};
}

Launch decode_launch(const Step& step, int parts) {
    return {{static_cast<unsigned>(tiles(step)), 1, static_cast<unsigned>(parts)},
            kDecodeThreads,
            kDecodeSharedBytes,
            true};
}

Launch combine_launch(const Step& step) {
    return {{static_cast<unsigned>(step.batch * step.q_len), 1,
             static_cast<unsigned>(divide_up(step.heads, kCombineHeads))},
            kCombineThreads,
            0,
            true};
}

ScheduleParameters schedule_parameters(const Step& step, const Memory& memory, int parts) {
    ScheduleParameters parameters = {};
    parameters.batch = step.batch;
    parameters.q_len = step.q_len;
    parameters.page_size = kPageSize;
    parameters.overhead_pages = kOverheadPages;
    parameters.top_k = -1;
    parameters.more_top_k = -1;
    parameters.lengths = memory.lengths;
    parameters.schedule = memory.schedule;
    parameters.splits = memory.splits;
    parameters.parts = parts;
    return parameters;
}

DecodeParameters decode_parameters(const Step& step, const Memory& memory, int parts) {
    const std::int64_t rows = step.rows();
    DecodeParameters parameters = {};
    parameters.batch = step.batch;
    parameters.q_len = step.q_len;
    parameters.rows = step.rows();
    parameters.dim = kDim;
    parameters.value_dim = kValueDim;
    parameters.heads = step.heads;
    parameters.kv_heads = 1;
    parameters.pool_pages = step.pool_pages;
    parameters.heads_per_kv_head = step.heads;
    // A single new token sees the whole sequence; the library drops the mask too.
    parameters.causal = step.q_len > 1;
    parameters.scale = step.scale;
    parameters.scale_log2 = static_cast<float>(step.scale * M_LOG2E);
    parameters.q = memory.q;
    parameters.cache = memory.cache;
    parameters.out = memory.out;
    parameters.lse = memory.lse;
    parameters.q_batch_stride = rows * kDim;
    parameters.page_stride = kPageSize * kDim;
    parameters.out_batch_stride = rows * kValueDim;
    parameters.q_row_stride = kDim;
    parameters.cache_row_stride = kDim;
    parameters.out_row_stride = kValueDim;
    parameters.q_head_stride = kDim;
    parameters.cache_head_stride = kDim;
    parameters.out_head_stride = rows * kValueDim;
    parameters.table = memory.table;
    parameters.table_stride = memory.table_width;
    parameters.page_size = kPageSize;
    parameters.lengths = memory.lengths;
    parameters.schedule = memory.schedule;
    parameters.parts = parts;
    parameters.splits = memory.splits;
    parameters.partials = partials(step, parts);
    parameters.partial_lse = memory.partial_lse;
    parameters.partial_out = memory.partial_out;
    return parameters;
}

CombineParameters combine_parameters(const Step& step, const Memory& memory, int parts) {
    const int rows = step.rows();
    CombineParameters parameters = {};
    parameters.batch = step.batch;
    parameters.q_len = step.q_len;
    parameters.heads = step.heads;
    parameters.value_dim = kValueDim;
    parameters.lse = memory.lse;
    parameters.out = memory.out;
    parameters.lse_batch_stride = rows;
    parameters.lse_token_stride = step.heads;
    parameters.out_batch_stride = rows * kValueDim;
    parameters.out_token_stride = step.heads * kValueDim;
    parameters.out_head_stride = kValueDim;
    parameters.partial_lse = memory.partial_lse;
    parameters.partial_out = memory.partial_out;
    parameters.partial_lse_split_stride = rows;
    parameters.partial_lse_token_stride = step.heads;
    parameters.partial_out_split_stride = rows * kValueDim;
    parameters.partial_out_token_stride = step.heads * kValueDim;
    parameters.partial_out_head_stride = kValueDim;
    parameters.schedule = memory.schedule;
    parameters.splits = memory.splits;
    parameters.parts = parts;
    return parameters;
}

Boxes q_boxes(const Step& step, const Memory& memory) {
    return rows_boxes(memory.q, step, kDim, kDim);
}

Boxes cache_boxes(const Step& step, const Memory& memory) {
    constexpr std::uint64_t kRowBytes = kBf16Bytes * kDim;
    return {memory.cache,
            {kDim, kPageSize, 1, static_cast<std::uint64_t>(step.pool_pages)},
            {kRowBytes, kRowBytes, kPageSize * kRowBytes},
            {kBoxColumns, kPageSize, 1, 1}};
}

Boxes out_boxes(const Step& step, const Memory& memory) {
    const std::uint64_t rows = static_cast<std::uint64_t>(step.rows());
    return rows_boxes(memory.out, step, kValueDim, rows * kValueDim);
}

}  // namespace flash_mla
