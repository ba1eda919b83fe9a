// Calls FlashInfer's TllmGenFmhaRunner: its parameters for each kind of attention, its workspace,
// and the cubins that it loads.
#include "Kernels/baselines/flashinfer/trtllm_gen.h"
// The prefix that the runner's headers add to a kernel's name to get its file name, and the name of
// their list of kernels, which is never read.
#define TLLM_GEN_FMHA_CUBIN_PATH "cubins"
#define TLLM_GEN_FMHA_METAINFO_HASH ""
// The library's own headers need this order.
#include <flashinfer/exception.h>
#include <flashinfer/trtllm/common.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <flashinfer/trtllm/fmha/fmhaRunner.cuh>
#include <stdexcept>
#include <tuple>

#include "Kernels/device/launch.h"

namespace fi {
namespace {

using Params = TllmGenFmhaRunnerParams;

// The library's own size for counters, and what its documentation recommends for partial results.
constexpr std::size_t kCounterBytes = std::size_t{8} << 20;
constexpr std::size_t kScratchBytes = std::size_t{128} << 20;

// Reads cubins while a plan is made; null otherwise, when nothing may be loaded.
thread_local ReadCubin reader = nullptr;

class Reading {
  public:
    explicit Reading(ReadCubin read) { reader = read; }
    ~Reading() { reader = nullptr; }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
};

// Counters that the kernels expect to be zero and leave at zero, and space for partial results.
// Shared by all calls, as with the library: they must be on one stream.
class Workspace {
  public:
    static std::shared_ptr<Workspace> shared() {
        static std::weak_ptr<Workspace> kept;
        std::shared_ptr<Workspace> workspace = kept.lock();
        if (!workspace) {
            workspace = std::make_shared<Workspace>();
            kept = workspace;
        }
        return workspace;
    }

    Workspace() : memory_(kCounterBytes + kScratchBytes) {
        device::check(cudaMemset(memory_.address(), 0, memory_.bytes()), "cudaMemset");
        device::check(cudaDeviceSynchronize(), "zeroing the workspace of TRT-LLM-gen");
    }

    void place(Params& params) const {
        params.multiCtasKvCounterPtr = static_cast<std::int32_t*>(memory_.address());
        params.multiCtasKvScratchPtr = static_cast<char*>(memory_.address()) + kCounterBytes;
    }

  private:
    DeviceMemory memory_;
};

int to_int(std::size_t number, const char* what) {
    if (number > INT_MAX) {
        throw std::invalid_argument(std::to_string(number) + " " + what +
                                    "; TRT-LLM-gen is limited to 31 bits");
    }
    return static_cast<int>(number);
}

struct Heads {
    std::uint32_t q;
    std::uint32_t kv;
    std::uint32_t qk_dim;
    std::uint32_t v_dim;
};

// Shared by all calls, set as in the library's launchers.
Params attention(const Heads& heads, float scale, int multiprocessors) {
    Params params;
    params.mNumHeadsQ = static_cast<int>(heads.q);
    params.mNumHeadsKv = static_cast<int>(heads.kv);
    params.mNumHeadsQPerKv = static_cast<int>(heads.q / heads.kv);
    params.mHeadDimQk = static_cast<int>(heads.qk_dim);
    params.mHeadDimV = static_cast<int>(heads.v_dim);
    params.qStrideTokens = static_cast<int>(heads.q * heads.qk_dim);
    params.qStrideHeads = static_cast<int>(heads.qk_dim);
    params.mMultiProcessorCount = multiprocessors;
    params.outputScale = 1;
    params.scaleSoftmaxLog2 = static_cast<float>(scale * M_LOG2E);
    params.mScaleSfKv = 1;
    params.mScaleSfO = 1;
    // No window, no chunks.
    params.mChunkedAttentionSize = INT_MAX;
    params.mAttentionWindowSize = INT_MAX;
    params.mSparseMlaType = TrtllmGenSparseMlaType::None;
    // As in the library, on devices of this kind.
    params.enable_pdl = true;
    return params;
}

// Elements to the next token, to the next head, and of a page.
struct Strides {
    std::size_t token;
    std::size_t head;
    std::size_t page;
};

// Dense [tokens, heads, dim].
Strides strides(std::size_t heads, std::size_t dim, std::size_t tokens) {
    return {heads * dim, dim, heads * dim * tokens};
}

void place(Params& params, const Strides& keys, const Strides& values) {
    constexpr const char* kToken = "elements to the next token";
    constexpr const char* kHead = "elements to the next head";
    constexpr const char* kPage = "elements of a page";
    params.kStrideKeysValues = to_int(keys.token, kToken);
    params.vStrideKeysValues = to_int(values.token, kToken);
    params.kStrideHeads = to_int(keys.head, kHead);
    params.vStrideHeads = to_int(values.head, kHead);
    params.kStrideBatch = to_int(keys.page, kPage);
    params.vStrideBatch = to_int(values.page, kPage);
}

Params with(const RaggedPrefill& call, int multiprocessors) {
    const std::uint32_t dim = call.head_dim;
    Params params =
        attention({call.q_heads, call.kv_heads, dim, call.value_dim}, call.scale, multiprocessors);
    params.qPtr = call.q;
    params.kPtr = call.k;
    params.vPtr = call.v;
    params.oPtr = call.out;
    params.cumSeqLensQPtr = call.q_starts;
    params.cumSeqLensKvPtr = call.kv_starts;
    params.mBatchSize = to_int(call.q_starts_on_host.size() - 1, "requests");
    params.mMaxSeqLenQ = longest(call.q_starts_on_host);
    params.mMaxSeqLenKv = longest(call.kv_starts_on_host);
    params.mSumOfSeqLensQ = call.q_starts_on_host.back();
    params.mSumOfSeqLensKv = call.kv_starts_on_host.back();
    const auto tokens = static_cast<std::size_t>(params.mSumOfSeqLensKv);
    place(params, strides(call.kv_heads, dim, tokens),
          strides(call.kv_heads, call.value_dim, tokens));
    params.mQkvLayout = QkvLayout::SeparateQkv;
    params.mKernelType = FmhaKernelType::Context;
    params.mTileScheduler = TileScheduler::Persistent;
    params.mMultiCtasKvMode = false;
    params.mMaskType =
        call.causal ? TrtllmGenAttentionMaskType::Causal : TrtllmGenAttentionMaskType::Dense;
    return params;
}

// Shared by both kinds of decode.
void place_pages(Params& params, const PageTable& pages, std::uint32_t q_len) {
    const std::size_t batch = pages.lengths_on_host.size();
    params.seqLensKvPtr = pages.lengths;
    params.mBatchSize = to_int(batch, "sequences");
    params.mMaxSeqLenQ = static_cast<int>(q_len);
    params.mSumOfSeqLensQ = to_int(batch * q_len, "queries");
    params.mMaxSeqLenKv =
        *std::max_element(pages.lengths_on_host.begin(), pages.lengths_on_host.end());
    params.mMaxNumPagesPerSeqKv = longest(pages.indptr_on_host);
    params.mNumTokensPerPage = static_cast<int>(pages.page_size);
    params.mNumPagesInMemPool = static_cast<int>(pages.pool_pages);
    params.mUsesSharedPagedKvIdx = true;
    params.mQkvLayout = QkvLayout::PagedKv;
    params.mKernelType = FmhaKernelType::Generation;
    params.mTileScheduler = TileScheduler::Static;
    params.mMultiCtasKvMode = true;
}

Params with(const TrtllmGenDecode& step, int multiprocessors) {
    const PagedDecode& call = step.call;
    const std::size_t dim = call.head_dim;
    Params params = attention({call.heads, call.kv_heads, call.head_dim, call.head_dim}, call.scale,
                              multiprocessors);
    place_pages(params, step.pages, call.q_len);
    params.qPtr = call.q;
    params.kPtr = call.k_pages;
    params.vPtr = call.v_pages;
    params.oPtr = call.out;
    Strides pool = strides(call.kv_heads, dim, step.pages.page_size);
    if (call.heads_first) {
        pool.token = dim;
        pool.head = step.pages.page_size * dim;
    }
    place(params, pool, pool);
    // The scale of FP8 keys is in that of the scores.
    if (call.fp8_cache) params.outputScale = call.v_scale;
    params.mMaskType = TrtllmGenAttentionMaskType::Causal;
    return params;
}

Params with(const JoinedMla& step, int multiprocessors) {
    constexpr std::uint32_t kLatent = 512;
    constexpr std::uint32_t kRow = kLatent + 64;
    Params params = attention({step.heads, 1, kRow, kLatent}, step.scale, multiprocessors);
    place_pages(params, step.pages, step.q_len);
    params.qPtr = step.q;
    // Values are the first 512 of a row.
    params.kPtr = params.vPtr = step.cache;
    params.oPtr = step.out;
    const std::size_t page = std::size_t{step.pages.page_size} * kRow;
    const Strides pool = {kRow, page, page};
    place(params, pool, pool);
    // The library's choice for latent attention: masking by the query's length.
    params.mMaskType = TrtllmGenAttentionMaskType::Dense;
    return params;
}

// The reason without the location in the library's source.
std::string reason(const flashinfer::Error& error) {
    const std::string text = error.what();
    const std::size_t missing = text.find("Trtllm-gen kernels not found");
    return missing == std::string::npos ? text : "no such kernel: " + text.substr(missing);
}

Data_type cache_type(const TrtllmGenDecode& step) {
    return step.call.fp8_cache ? DATA_TYPE_E4M3 : DATA_TYPE_BF16;
}
template <class Call>
Data_type cache_type(const Call&) {
    return DATA_TYPE_BF16;
}

TrtllmGenChoice choose(const Params& params, Data_type cache, bool clusters_fit) {
    using tensorrt_llm::kernels::sTllmGenFmhaKernelMetaInfos;
    // A separate one, because it caches what it has loaded.
    TllmGenFmhaKernel kernels(sTllmGenFmhaKernelMetaInfos, std::size(sTllmGenFmhaKernelMetaInfos),
                              DATA_TYPE_BF16, cache, cache, DATA_TYPE_BF16, kSM_100);
    kernels.loadKernels();
    Rehearsal rehearsal(Rehearsal::Modules::kPretended);
    rehearsal.clusters_fit = clusters_fit;
    try {
        kernels.run(params);
    } catch (const flashinfer::Error& error) {
        throw std::invalid_argument(reason(error));
    }
    if (rehearsal.launches.empty()) throw std::logic_error("TRT-LLM-gen launched nothing");
    return {rehearsal.launches.front(), std::move(rehearsal.cubins)};
}

TllmGenFmhaRunner& runner_over(Data_type cache) {
    static TllmGenFmhaRunner bf16(DATA_TYPE_BF16, DATA_TYPE_BF16, DATA_TYPE_BF16);
    static TllmGenFmhaRunner fp8(DATA_TYPE_BF16, DATA_TYPE_E4M3, DATA_TYPE_BF16);
    return cache == DATA_TYPE_E4M3 ? fp8 : bf16;
}

class TrtllmGenPlanned : public Planned {
  public:
    TrtllmGenPlanned(const Params& params, Data_type cache, std::unique_ptr<DeviceMemory> table,
                     ReadCubin read)
        : params_(params),
          runner_(runner_over(cache)),
          table_(std::move(table)),
          workspace_(Workspace::shared()) {
        workspace_->place(params_);
        const Reading reading(read);
        // Loads what the call needs, so that no launch has to.
        Rehearsal rehearsal(Rehearsal::Modules::kLoaded);
        const auto start = std::chrono::steady_clock::now();
        runner_.run(params_);
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - start;
        microseconds = took.count();
        for (const std::string& launch : rehearsal.launches) {
            kernel += (kernel.empty() ? "" : ", ") + launch;
        }
    }

    void enqueue(cudaStream_t stream) override {
        params_.stream = stream;
        runner_.run(params_);
    }

  private:
    Params params_;
    TllmGenFmhaRunner& runner_;
    std::unique_ptr<DeviceMemory> table_;
    std::shared_ptr<Workspace> workspace_;
};

std::vector<std::int32_t> rows_of(const PageTable& pages) {
    return page_rows(pages, static_cast<std::size_t>(longest(pages.indptr_on_host)));
}

// The table that the kernel reads on the device: lengths of keys, or rows of pages.
std::vector<std::int32_t> table_of(const RaggedPrefill& call) {
    std::vector<std::int32_t> lengths(call.kv_starts_on_host.size() - 1);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        lengths[i] = call.kv_starts_on_host[i + 1] - call.kv_starts_on_host[i];
    }
    return lengths;
}
std::vector<std::int32_t> table_of(const TrtllmGenDecode& step) { return rows_of(step.pages); }
std::vector<std::int32_t> table_of(const JoinedMla& step) { return rows_of(step.pages); }

}  // namespace

std::string trtllm_gen_archive_sha256_sm100() {
    struct Artifact {
        const char* version;
        const char* sha256;
    };
    constexpr Artifact kArtifact = {
#include "flashinfer_cubin/sm_100a.artifact.inc"
    };
    return kArtifact.sha256;
}

template <class Call>
TrtllmGenChoice choose_trtllm_gen_sm100(const Call& call, int multiprocessors, bool clusters_fit) {
    return choose(with(call, multiprocessors), cache_type(call), clusters_fit);
}

template <class Call>
std::unique_ptr<Planned> plan_trtllm_gen_sm100(const Call& call, ReadCubin read) {
    Params params = with(call, device::multiprocessors());
    auto table = on_device(table_of(call));
    const auto* address = static_cast<const int*>(table->address());
    (isPagedKv(params.mQkvLayout) ? params.kvPageIdxPtr : params.seqLensKvPtr) = address;
    return std::make_unique<TrtllmGenPlanned>(params, cache_type(call), std::move(table), read);
}

template TrtllmGenChoice choose_trtllm_gen_sm100(const RaggedPrefill&, int, bool);
template TrtllmGenChoice choose_trtllm_gen_sm100(const TrtllmGenDecode&, int, bool);
template TrtllmGenChoice choose_trtllm_gen_sm100(const JoinedMla&, int, bool);
template std::unique_ptr<Planned> plan_trtllm_gen_sm100(const RaggedPrefill&, ReadCubin);
template std::unique_ptr<Planned> plan_trtllm_gen_sm100(const TrtllmGenDecode&, ReadCubin);
template std::unique_ptr<Planned> plan_trtllm_gen_sm100(const JoinedMla&, ReadCubin);

}  // namespace fi

namespace flashinfer::trtllm_cubin_loader {

// Called by the headers to load machine code.
std::string getCubin(const std::string& path, const std::string& sha256) {
    fi::Rehearsal* rehearsal = fi::Rehearsal::current();
    if (rehearsal != nullptr) rehearsal->cubins.push_back({path, sha256});
    if (rehearsal != nullptr && rehearsal->modules == fi::Rehearsal::Modules::kPretended) {
        return "not empty, which would mean that there is none";
    }
    if (fi::reader == nullptr) throw std::logic_error(path + " is needed after its plan was made");
    return fi::reader({path, sha256});
}

}  // namespace flashinfer::trtllm_cubin_loader

namespace tensorrt_llm::kernels {

// The library's own launcher, which the BUILD file compiles under this name.
void launch_fmha_reduction(const TllmGenFmhaKernelMetaInfo& kernel, const KernelParams& params,
                           std::int32_t multiprocessors, bool enable_pdl, cudaStream_t stream);

// Called by the headers after every launch; merges partial results if the kernel leaves that to a
// second one.
void runFmhaReduction(const TllmGenFmhaKernelMetaInfo& kernel, const KernelParams& params,
                      std::int32_t multiprocessors, bool enable_pdl, cudaStream_t stream) {
    if (!isGmemReductionWithSeparateKernel(static_cast<MultiCtasKvMode>(kernel.mMultiCtasKvMode))) {
        return;
    }
    if (fi::Rehearsal* rehearsal = fi::Rehearsal::current()) {
        rehearsal->launches.push_back("fmhaReductionKernel");
        return;
    }
    launch_fmha_reduction(kernel, params, multiprocessors, enable_pdl, stream);
}

}  // namespace tensorrt_llm::kernels
