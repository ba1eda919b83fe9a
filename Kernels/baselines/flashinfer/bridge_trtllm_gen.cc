#include <string>

#include "Kernels/baselines/flashinfer/bridge.h"
#include "Kernels/baselines/flashinfer/lib.rs.h"
#include "Kernels/baselines/flashinfer/mla_cutlass.h"
#include "Kernels/baselines/flashinfer/trtllm_gen.h"

namespace fi::bridge {
namespace {

fi::JoinedMla joined(const MlaDecode& call, const PageTable& pages) {
    return {reinterpret_cast<const void*>(call.q),
            reinterpret_cast<const void*>(call.cache),
            reinterpret_cast<void*>(call.out),
            page_table(pages),
            call.q_len,
            call.heads,
            call.scale};
}

std::string read(const fi::Cubin& cubin) {
    const rust::Vec<std::uint8_t> bytes = read_cubin(cubin.path, cubin.sha256);
    return std::string(bytes.begin(), bytes.end());
}

template <class Call>
TrtllmGenChoice choose(const Call& call, const TrtllmGenDevice& device) {
    const fi::TrtllmGenChoice choice =
        choose_trtllm_gen(call, static_cast<int>(device.multiprocessors), device.clusters_fit);
    TrtllmGenChoice result;
    result.kernel = choice.kernel;
    for (const fi::Cubin& cubin : choice.cubins) {
        result.cubins.push_back(Cubin{cubin.path, cubin.sha256});
    }
    return result;
}

}  // namespace

bool has_trtllm_gen() { return fi::has_trtllm_gen(); }

rust::String trtllm_gen_archive_sha256() { return fi::trtllm_gen_archive_sha256(); }

TrtllmGenChoice choose_trtllm_gen_prefill(const Prefill& call,
                                          rust::Slice<const std::int32_t> q_starts,
                                          rust::Slice<const std::int32_t> kv_starts,
                                          TrtllmGenDevice device) {
    return choose(ragged_prefill(call, q_starts, kv_starts), device);
}

std::unique_ptr<Planned> plan_trtllm_gen_prefill(const Prefill& call,
                                                 rust::Slice<const std::int32_t> q_starts,
                                                 rust::Slice<const std::int32_t> kv_starts) {
    return plan_trtllm_gen(ragged_prefill(call, q_starts, kv_starts), read);
}

TrtllmGenChoice choose_trtllm_gen_decode(const Decode& call, const PageTable& pages,
                                         TrtllmGenDevice device) {
    return choose(TrtllmGenDecode{paged_decode(call), page_table(pages)}, device);
}

std::unique_ptr<Planned> plan_trtllm_gen_decode(const Decode& call, const PageTable& pages) {
    return plan_trtllm_gen(TrtllmGenDecode{paged_decode(call), page_table(pages)}, read);
}

TrtllmGenChoice choose_trtllm_gen_mla(const MlaDecode& call, const PageTable& pages,
                                      TrtllmGenDevice device) {
    return choose(joined(call, pages), device);
}

std::unique_ptr<Planned> plan_trtllm_gen_mla(const MlaDecode& call, const PageTable& pages) {
    return plan_trtllm_gen(joined(call, pages), read);
}

bool has_mla_cutlass() { return fi::has_mla_cutlass(); }

std::unique_ptr<Planned> plan_mla_cutlass(const MlaDecode& call, const PageTable& pages) {
    return fi::plan_mla_cutlass(joined(call, pages));
}

}  // namespace fi::bridge
