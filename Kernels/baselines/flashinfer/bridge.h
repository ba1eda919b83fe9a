// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/flashinfer/planned.h"
#include "rust/cxx.h"

namespace fi::bridge {

enum class Dtype : std::uint8_t;
enum class PrefillKernel : std::uint8_t;
enum class DecodeKernel : std::uint8_t;
enum class MlaKernel : std::uint8_t;
struct Matrix;
struct RmsNorm;
struct FusedAddRmsNorm;
struct LayerNorm;
struct Prefill;
struct Decode;
struct MlaDecode;

void rmsnorm(const RmsNorm& tensors, const Matrix& matrix, std::size_t stream);
void fused_add_rmsnorm(const FusedAddRmsNorm& tensors, const Matrix& matrix, std::size_t stream);
void layernorm(const LayerNorm& tensors, const Matrix& matrix, std::size_t stream);

void enqueue(Planned& planned, std::size_t stream);
double plan_microseconds(const Planned& planned);
rust::String kernel_name(const Planned& planned);

bool has_prefill(PrefillKernel kernel, Dtype dtype, std::uint32_t head_dim);
std::unique_ptr<Planned> plan_prefill(PrefillKernel kernel, const Prefill& call,
                                      rust::Slice<const std::int32_t> q_starts,
                                      rust::Slice<const std::int32_t> kv_starts);

bool has_decode(DecodeKernel kernel, Dtype dtype, std::uint32_t head_dim);
std::unique_ptr<Planned> plan_decode(DecodeKernel kernel, const Decode& call,
                                     rust::Slice<const std::int32_t> page_starts);

bool has_mla_decode(MlaKernel kernel);
std::unique_ptr<Planned> plan_mla_decode(MlaKernel kernel, const MlaDecode& call,
                                         rust::Slice<const std::int32_t> page_starts,
                                         rust::Slice<const std::int32_t> lengths);

}  // namespace fi::bridge
