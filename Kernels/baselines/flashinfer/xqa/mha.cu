// One variant of XQA. Its name, XQA_NAME, and its sizes, in the library's macros, are definitions
// of the target.

#include "Kernels/baselines/flashinfer/xqa/kernel.h"

#ifdef H2H_LEFT_OUT
#include "Kernels/device/left_out.h"

namespace fi::XQA_NAME {

void launch(const XqaCall&, cudaStream_t) { device::left_out(); }

extern const XqaKernel kernel = {device::left_out, launch, 1};

}  // namespace fi::XQA_NAME
#else

// The library's launchers have external linkage, and variants share a program.
#define XQA_JOIN(name, suffix) name##_##suffix
#define XQA_UNIQUE(name, suffix) XQA_JOIN(name, suffix)
#define launchMHA XQA_UNIQUE(launchMHA, XQA_NAME)
#define launchMHAFlashInfer XQA_UNIQUE(launchMHAFlashInfer, XQA_NAME)
#include <xqa/mha.cu>

namespace fi::XQA_NAME {

void prepare() { static_cast<void>(hostSmemSize); }

void launch(const XqaCall& call, cudaStream_t stream) {
    const auto cache = [](const void* pages) {
        return static_cast<GMemCacheHead*>(const_cast<void*>(pages));
    };
    launchMHAFlashInfer(call.multiprocessors, call.kv_heads, /*slidingWinSize=*/0, call.q_scale,
                        /*qScalePtr=*/nullptr, static_cast<OutputHead*>(call.out),
                        static_cast<const InputHead*>(call.q), /*attentionSinks=*/nullptr,
                        cache(call.k_pages), cache(call.v_pages), call.page_rows, call.most_tokens,
                        reinterpret_cast<const std::uint32_t*>(call.lengths), call.batch,
                        call.kv_scale,
                        /*kvScalePtr=*/nullptr,
#if SPEC_DEC
                        call.q_len, /*qCuSeqLens=*/nullptr, call.mask,
#endif
                        call.semaphores, call.scratch, /*enable_pdl=*/true, call.page_stride,
                        call.token_stride, call.head_stride, stream);
}

extern const XqaKernel kernel = {prepare, launch, ctaTile.x};

}  // namespace fi::XQA_NAME
#endif
