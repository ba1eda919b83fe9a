// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/flashinfer/decode.h"
#include "Kernels/baselines/flashinfer/page_rows.h"
#include "Kernels/baselines/flashinfer/planned.h"
#include "Kernels/baselines/flashinfer/prefill.h"
#include "rust/cxx.h"

namespace fi::bridge {

enum class Dtype : std::uint8_t;
enum class PrefillKernel : std::uint8_t;
enum class DecodeKernel : std::uint8_t;
enum class MlaKernel : std::uint8_t;
struct Prefill;
struct Decode;
struct MlaDecode;
struct PageTable;
struct TrtllmGenChoice;
struct TrtllmGenDevice;

void enqueue(Planned& planned, std::size_t stream);
double plan_microseconds(const Planned& planned);
rust::String kernel_name(const Planned& planned);

bool has_prefill(PrefillKernel kernel, Dtype dtype, std::uint32_t head_dim,
                 std::uint32_t value_dim);
std::unique_ptr<Planned> plan_prefill(PrefillKernel kernel, const Prefill& call,
                                      rust::Slice<const std::int32_t> q_starts,
                                      rust::Slice<const std::int32_t> kv_starts);

bool has_decode(DecodeKernel kernel, Dtype dtype, std::uint32_t head_dim, bool fp8_cache);
std::unique_ptr<Planned> plan_decode(DecodeKernel kernel, const Decode& call,
                                     rust::Slice<const std::int32_t> page_starts);

bool has_mla_decode(MlaKernel kernel);
std::unique_ptr<Planned> plan_mla_decode(MlaKernel kernel, const MlaDecode& call,
                                         rust::Slice<const std::int32_t> page_starts,
                                         rust::Slice<const std::int32_t> lengths);

// These are in bridge_trtllm_gen.cc.
bool has_trtllm_gen();
rust::String trtllm_gen_archive_sha256();
TrtllmGenChoice choose_trtllm_gen_prefill(const Prefill& call,
                                          rust::Slice<const std::int32_t> q_starts,
                                          rust::Slice<const std::int32_t> kv_starts,
                                          TrtllmGenDevice device);
std::unique_ptr<Planned> plan_trtllm_gen_prefill(const Prefill& call,
                                                 rust::Slice<const std::int32_t> q_starts,
                                                 rust::Slice<const std::int32_t> kv_starts);
TrtllmGenChoice choose_trtllm_gen_decode(const Decode& call, const PageTable& pages,
                                         TrtllmGenDevice device);
std::unique_ptr<Planned> plan_trtllm_gen_decode(const Decode& call, const PageTable& pages);
TrtllmGenChoice choose_trtllm_gen_mla(const MlaDecode& call, const PageTable& pages,
                                      TrtllmGenDevice device);
std::unique_ptr<Planned> plan_trtllm_gen_mla(const MlaDecode& call, const PageTable& pages);
bool has_mla_cutlass();
std::unique_ptr<Planned> plan_mla_cutlass(const MlaDecode& call, const PageTable& pages);

// These are in bridge_xqa.cc.
bool has_xqa(Dtype dtype, std::uint32_t head_dim, std::uint32_t group, std::uint32_t page_size,
             std::uint32_t q_len, bool fp8_cache);
std::unique_ptr<Planned> plan_xqa(const Decode& call, const PageTable& pages);

// The library's choice for a call; pages are left out of the latter.
RaggedPrefill ragged_prefill(const Prefill& call, rust::Slice<const std::int32_t> q_starts,
                             rust::Slice<const std::int32_t> kv_starts);
PagedDecode paged_decode(const Decode& call);
fi::PageTable page_table(const PageTable& pages);

}  // namespace fi::bridge
