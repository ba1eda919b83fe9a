// Parameters of FlashMLA's kernels, byte for byte as its machine code reads them, and the launches
// that its own host code makes of a decoding step: pure host code.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flash_mla {

// Elements of a query and of a cached row, and how many of the latter are values as well.
constexpr int kDim = 576;
constexpr int kValueDim = 512;
// Tokens per page: the kernel's tile of the cache.
constexpr int kPageSize = 64;
// Rows of queries per block; a row is one head of one new token.
constexpr int kTileRows = 64;
// Elements per row of a TMA box: 128 bytes, the swizzle's width.
constexpr int kBoxColumns = 64;

// One decoding step: [batch, q_len, heads, 576] queries over pages of [64, 576], bf16.
struct Step {
    int batch;
    int q_len;
    int heads;
    int pool_pages;
    float scale;

    int rows() const { return q_len * heads; }
};

// Device memory that a step reads and writes.
struct Memory {
    const void* q;
    const void* cache;
    // [batch, q_len, heads, 512].
    void* out;
    // [batch] lengths; [batch, table_width] pages, whose entries behind a sequence are not read,
    // except for the first of an empty one.
    const std::int32_t* lengths;
    const std::int32_t* table;
    int table_width;
    // Written for the caller by the library, and read by nobody here: [batch, q_len, heads].
    float* lse;
    // Partial results of split sequences: [partials, q_len, heads] and [.., 512].
    float* partial_lse;
    float* partial_out;
    // The schedule: `parts` entries, and [batch + 1] offsets of each sequence's splits.
    void* schedule;
    std::int32_t* splits;
};

struct Extent {
    unsigned x, y, z;
};

struct Launch {
    Extent grid;
    unsigned threads;
    unsigned shared_bytes;
    // Programmatic dependent launch, as the library asks for.
    bool overlaps_previous;
};

// How many ways the library divides the cache: one block per part and tile of rows.
int parts(const Step& step, int multiprocessors);
// Partial results that it keeps room for, and their elements.
int partials(const Step& step, int parts);
std::int64_t partial_elements(const Step& step, int parts);
// Whether the kernels, which count those elements with 32 bits, can take the step.
bool fits(const Step& step, int parts);
// The combining kernel is compiled for several of these; the one that it takes for `parts`.
int most_splits(int parts);

Launch schedule_launch(const Step& step);
Launch decode_launch(const Step& step, int parts);
Launch combine_launch(const Step& step);

// One entry of the schedule.
constexpr std::size_t kScheduleBytes = 32;

struct ScheduleParameters {
    std::int32_t batch;
    std::int32_t q_len;
    std::int32_t page_size;
    // What a sequence costs besides its pages, in pages.
    std::int32_t overhead_pages;
    // -1: dense attention, for which the next two pointers are null.
    std::int32_t top_k;
    std::int32_t more_top_k;
    const std::int32_t* top_k_lengths;
    const std::int32_t* more_top_k_lengths;
    const std::int32_t* lengths;
    void* schedule;
    std::int32_t* splits;
    std::int32_t parts;
    void* stream;
};
static_assert(sizeof(ScheduleParameters) == 0x50, "the machine code has 80 bytes of them");

struct DecodeParameters {
    std::int32_t batch;
    std::int32_t q_len;
    // Rows per KV head, of which latent attention has one.
    std::int32_t rows;
    std::int32_t dim;
    std::int32_t value_dim;
    std::int32_t heads;
    std::int32_t kv_heads;
    std::int32_t pool_pages;
    std::int32_t heads_per_kv_head;
    bool causal;
    float scale;
    float scale_log2;
    const void* q;
    const void* cache;
    void* out;
    float* lse;
    // In elements.
    std::int64_t q_batch_stride;
    std::int64_t page_stride;
    std::int64_t out_batch_stride;
    std::int64_t q_row_stride;
    std::int64_t cache_row_stride;
    std::int64_t out_row_stride;
    std::int64_t q_head_stride;
    std::int64_t cache_head_stride;
    std::int64_t out_head_stride;
    const std::int32_t* table;
    std::int64_t table_stride;
    std::int32_t page_size;
    const std::int32_t* lengths;
    void* schedule;
    std::int32_t parts;
    std::int32_t* splits;
    std::int32_t partials;
    float* partial_lse;
    float* partial_out;
    void* stream;
};
static_assert(sizeof(DecodeParameters) == 0xf0, "the machine code has 240 bytes of them");
static_assert(offsetof(DecodeParameters, lse) == 0x48 && offsetof(DecodeParameters, table) == 0x98,
              "the machine code reads them there");

// A shape, which the machine code does not read, and a tensor map behind it. The map is followed by
// an empty struct of CuTe's, which the alignment makes 128 bytes.
struct ShapedMap {
    std::int32_t shape[4];
    alignas(128) unsigned char map[128];
    unsigned char empty[128];
};
static_assert(sizeof(ShapedMap) == 0x180 && offsetof(ShapedMap, map) == 0x80,
              "the machine code has a map every 384 bytes");

struct DecodeMaps {
    ShapedMap q;
    ShapedMap cache;
    ShapedMap out;
};
static_assert(sizeof(DecodeMaps) == 0x480, "the machine code has 1152 bytes of them");

struct CombineParameters {
    std::int32_t batch;
    std::int32_t q_len;
    std::int32_t heads;
    std::int32_t value_dim;
    float* lse;
    void* out;
    // In elements.
    std::int32_t lse_batch_stride;
    std::int32_t lse_token_stride;
    std::int32_t out_batch_stride;
    std::int32_t out_token_stride;
    std::int32_t out_head_stride;
    const float* partial_lse;
    const float* partial_out;
    std::int32_t partial_lse_split_stride;
    std::int32_t partial_lse_token_stride;
    std::int32_t partial_out_split_stride;
    std::int32_t partial_out_token_stride;
    std::int32_t partial_out_head_stride;
    const void* schedule;
    const std::int32_t* splits;
    std::int32_t parts;
    const float* sink;
    void* stream;
};
static_assert(sizeof(CombineParameters) == 0x88, "the machine code has 136 bytes of them");
static_assert(offsetof(CombineParameters, partial_lse) == 0x38 &&
                  offsetof(CombineParameters, splits) == 0x68,
              "the machine code reads them there");

// `stream` stays null in all of them: the library's launcher reads it, its kernels do not.
ScheduleParameters schedule_parameters(const Step& step, const Memory& memory, int parts);
DecodeParameters decode_parameters(const Step& step, const Memory& memory, int parts);
CombineParameters combine_parameters(const Step& step, const Memory& memory, int parts);

// What a tensor map is encoded from: sizes from the contiguous dimension on, strides in bytes.
struct Boxes {
    const void* address;
    std::uint64_t sizes[4];
    std::uint64_t strides[3];
    std::uint32_t box[4];
};
Boxes q_boxes(const Step& step, const Memory& memory);
Boxes cache_boxes(const Step& step, const Memory& memory);
Boxes out_boxes(const Step& step, const Memory& memory);

}  // namespace flash_mla
