#include "Kernels/baselines/flashinfer/xqa/xqa.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "Kernels/baselines/flashinfer/xqa/kernel.h"

#ifdef FLASHINFER_SM90A
// In one translation unit each.
#define XQA_VARIANT(name, ...)     \
    namespace fi::name {           \
    extern const XqaKernel kernel; \
    }
#include "Kernels/baselines/flashinfer/xqa/variants.inc"
#undef XQA_VARIANT
#endif

namespace fi {
namespace {

// New tokens that one word of the mask covers.
constexpr std::uint32_t kMaskBits = 32;

struct Variant {
    const XqaKernel* kernel;
    bool fp8_cache;
    std::uint32_t head_dim;
    std::uint32_t group;
    std::uint32_t page_size;
    bool many_tokens;
};

const XqaKernel* find(const XqaSizes& sizes) {
    static const std::vector<Variant> variants = {
#ifdef FLASHINFER_SM90A
#define XQA_VARIANT(name, ...) {&name::kernel, __VA_ARGS__},
#include "Kernels/baselines/flashinfer/xqa/variants.inc"
#undef XQA_VARIANT
#endif
    };
    if (sizes.q_len > kMaskBits) return nullptr;
    for (const Variant& variant : variants) {
        if (variant.fp8_cache == sizes.fp8_cache && variant.head_dim == sizes.head_dim &&
            variant.group == sizes.group && variant.page_size == sizes.page_size &&
            variant.many_tokens == (sizes.q_len > 1)) {
            return variant.kernel;
        }
    }
    return nullptr;
}

// Query i of q_len sees the new tokens up to its own.
std::vector<std::int32_t> causal_mask(std::size_t batch, std::uint32_t q_len) {
    std::vector<std::int32_t> mask;
    mask.reserve(batch * q_len);
    for (std::size_t row = 0; row < batch * q_len; ++row) {
        mask.push_back(
            static_cast<std::int32_t>(~std::uint32_t{0} >> (kMaskBits - 1 - row % q_len)));
    }
    return mask;
}

class XqaPlanned : public Planned {
  public:
    XqaPlanned(const XqaKernel& kernel, const PagedDecode& call, const PageTable& pages);
    void enqueue(cudaStream_t stream) override;

  private:
    // As the library computes it at launch.
    std::uint32_t blocks_per_head(const XqaKernel& kernel) const;

    const XqaKernel& kernel_;
    std::shared_ptr<Scratch> scratch_;
    std::unique_ptr<DeviceMemory> page_rows_;
    std::unique_ptr<DeviceMemory> mask_;
    std::unique_ptr<DeviceMemory> semaphores_;
    XqaCall call_ = {};
};

XqaPlanned::XqaPlanned(const XqaKernel& kernel, const PagedDecode& call, const PageTable& pages)
    : kernel_(kernel), scratch_(Scratch::shared()) {
    const auto batch = static_cast<std::uint32_t>(pages.lengths_on_host.size());
    const auto width = static_cast<std::uint32_t>(longest(pages.indptr_on_host));
    page_rows_ = on_device(page_rows(pages, width));
    mask_ = on_device(causal_mask(batch, call.q_len));
    // At most one per query and head. The last block of a sequence resets what it merges by.
    semaphores_ =
        on_device(std::vector<std::int32_t>(std::size_t{batch} * call.q_len * call.heads));
    call_.q = call.q;
    call_.k_pages = call.k_pages;
    call_.v_pages = call.v_pages;
    call_.out = call.out;
    call_.page_rows = static_cast<const std::int32_t*>(page_rows_->address());
    call_.lengths = pages.lengths;
    call_.mask = static_cast<const std::uint32_t*>(mask_->address());
    call_.semaphores = static_cast<std::uint32_t*>(semaphores_->address());
    call_.scratch = scratch_->partials.address();
    call_.multiprocessors = static_cast<std::uint32_t>(device::multiprocessors());
    call_.batch = batch;
    call_.q_len = call.q_len;
    call_.kv_heads = call.kv_heads;
    call_.most_tokens = width * pages.page_size;
    const std::uint64_t row = call.head_dim;
    call_.page_stride = row * call.kv_heads * pages.page_size;
    call_.token_stride = call.heads_first ? row : row * call.kv_heads;
    call_.head_stride = call.heads_first ? row * pages.page_size : row;
    // As in the library's wrapper: the kernel has one scale for keys and values, and divides scores
    // by the root of the head size.
    call_.kv_scale = call.v_scale;
    call_.q_scale = call.scale / call.v_scale * std::sqrt(static_cast<float>(call.head_dim));
    kernel.prepare();
    this->kernel = "XQA kernel_mha, " + std::to_string(blocks_per_head(kernel)) +
                   " blocks per sequence and KV head";
}

std::uint32_t XqaPlanned::blocks_per_head(const XqaKernel& kernel) const {
    const std::uint32_t tiles = (call_.most_tokens + kernel.tile_tokens - 1) / kernel.tile_tokens;
    const std::uint32_t heads = call_.batch * call_.kv_heads;
    return std::min(std::max(1u, call_.multiprocessors / heads), tiles);
}

void XqaPlanned::enqueue(cudaStream_t stream) {
    try {
        kernel_.launch(call_, stream);
    } catch (const std::runtime_error&) {
        // The library names the error; the runtime may say more.
        device::check(cudaGetLastError(), "FlashInfer's XQA");
        throw;
    }
}

}  // namespace

bool has_xqa(const XqaSizes& sizes) { return find(sizes) != nullptr; }

std::unique_ptr<Planned> plan_xqa(const PagedDecode& call, const PageTable& pages) {
    if (call.kv_heads == 0 || pages.lengths_on_host.empty()) {
        throw std::invalid_argument("no KV head or no sequence");
    }
    const XqaSizes sizes = {call.fp8_cache, call.head_dim, call.heads / call.kv_heads,
                            pages.page_size, call.q_len};
    const XqaKernel* kernel = call.type == Type::kBf16 ? find(sizes) : nullptr;
    if (kernel == nullptr) throw std::invalid_argument("this build has no such XQA kernel");
    return std::make_unique<XqaPlanned>(*kernel, call, pages);
}

}  // namespace fi
