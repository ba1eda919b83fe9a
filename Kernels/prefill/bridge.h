// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstdint>
#include <memory>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace prefill::bridge {

using device::Variant;
struct Batch;

rust::String choice(const Batch& batch, Variant variant);
std::unique_ptr<device::Plan> plan(const Batch& batch, Variant variant,
                                   rust::Slice<const std::int32_t> starts_q,
                                   rust::Slice<const std::int32_t> starts_kv);

}  // namespace prefill::bridge
