#include "Kernels/baselines/flashinfer/trtllm_gen.h"

#include <stdexcept>

namespace fi {

// In trtllm_gen_sm100.cu, for the calls of the header.
template <class Call>
TrtllmGenChoice choose_trtllm_gen_sm100(const Call& call, int multiprocessors, bool clusters_fit);
template <class Call>
std::unique_ptr<Planned> plan_trtllm_gen_sm100(const Call& call, ReadCubin read);

std::string trtllm_gen_archive_sha256_sm100();

std::string trtllm_gen_archive_sha256() {
#ifdef FLASHINFER_SM100A
    return trtllm_gen_archive_sha256_sm100();
#else
    return "";
#endif
}

bool has_trtllm_gen() {
#ifdef FLASHINFER_SM100A
    return true;
#else
    return false;
#endif
}

namespace {

void check(const RaggedPrefill& call) {
    const std::size_t starts = call.q_starts_on_host.size();
    if (starts < 2 || starts != call.kv_starts_on_host.size()) {
        throw std::invalid_argument(
            std::to_string(starts) + " and " + std::to_string(call.kv_starts_on_host.size()) +
            " starts of requests; expected one more than requests for both");
    }
    if (call.type != Type::kBf16) throw std::invalid_argument("TRT-LLM-gen is built for bf16 only");
}

void check(const PageTable& pages) {
    const std::size_t batch = pages.lengths_on_host.size();
    const std::vector<std::int32_t>& starts = pages.indptr_on_host;
    if (batch == 0 || starts.size() != batch + 1 ||
        static_cast<std::size_t>(starts.back()) != pages.indices_on_host.size()) {
        throw std::invalid_argument("a table of " + std::to_string(starts.size()) +
                                    " offsets and " + std::to_string(pages.indices_on_host.size()) +
                                    " pages for " + std::to_string(batch) + " sequences");
    }
}

void check(const TrtllmGenDecode& step) {
    check(step.pages);
    if (step.call.type != Type::kBf16) {
        throw std::invalid_argument("TRT-LLM-gen is built for bf16 only");
    }
}

void check(const JoinedMla& step) { check(step.pages); }

template <class Call>
TrtllmGenChoice choose(const Call& call, int multiprocessors, bool clusters_fit) {
    check(call);
#ifdef FLASHINFER_SM100A
    return choose_trtllm_gen_sm100(call, multiprocessors, clusters_fit);
#else
    static_cast<void>(multiprocessors), static_cast<void>(clusters_fit);
    throw std::logic_error("this build has no code for sm_100a");
#endif
}

template <class Call>
std::unique_ptr<Planned> plan(const Call& call, ReadCubin read) {
    check(call);
#ifdef FLASHINFER_SM100A
    return plan_trtllm_gen_sm100(call, read);
#else
    static_cast<void>(read);
    throw std::logic_error("this build has no code for sm_100a");
#endif
}

}  // namespace

TrtllmGenChoice choose_trtllm_gen(const RaggedPrefill& call, int multiprocessors,
                                  bool clusters_fit) {
    return choose(call, multiprocessors, clusters_fit);
}

TrtllmGenChoice choose_trtllm_gen(const TrtllmGenDecode& step, int multiprocessors,
                                  bool clusters_fit) {
    return choose(step, multiprocessors, clusters_fit);
}

TrtllmGenChoice choose_trtllm_gen(const JoinedMla& step, int multiprocessors, bool clusters_fit) {
    return choose(step, multiprocessors, clusters_fit);
}

std::unique_ptr<Planned> plan_trtllm_gen(const RaggedPrefill& call, ReadCubin read) {
    return plan(call, read);
}

std::unique_ptr<Planned> plan_trtllm_gen(const TrtllmGenDecode& step, ReadCubin read) {
    return plan(step, read);
}

std::unique_ptr<Planned> plan_trtllm_gen(const JoinedMla& step, ReadCubin read) {
    return plan(step, read);
}

}  // namespace fi
