// One compiled variant of FlashInfer's XQA kernels, which have their sizes compiled in.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace fi {

// Strides are in elements.
struct XqaCall {
    const void* q;
    const void* k_pages;
    const void* v_pages;
    void* out;
    const std::int32_t* page_rows;  // [batch, most_tokens / page size]
    const std::int32_t* lengths;    // of sequences
    const std::uint32_t* mask;      // [batch, q_len, 1]: which new tokens a query sees, as bits
    std::uint32_t* semaphores;      // 0 between calls
    void* scratch;
    std::uint32_t multiprocessors;
    std::uint32_t batch;
    std::uint32_t q_len;
    std::uint32_t kv_heads;
    std::uint32_t most_tokens;
    std::uint64_t page_stride;
    std::uint64_t token_stride;
    std::uint64_t head_stride;
    float q_scale;
    float kv_scale;
};

struct XqaKernel {
    // Raises the kernel's limit of shared memory. Synchronises; call once before launches.
    void (*prepare)();
    void (*launch)(const XqaCall& call, cudaStream_t stream);
    // Tokens of a sequence that a block loads at a time.
    std::uint32_t tile_tokens;
};

}  // namespace fi
