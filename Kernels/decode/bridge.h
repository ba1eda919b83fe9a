// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstdint>
#include <memory>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace decode::bridge {

using device::Variant;
struct Step;

rust::String choice(const Step& step, Variant variant);
std::unique_ptr<device::Plan> plan(const Step& step, Variant variant,
                                   rust::Slice<const std::int32_t> indptr,
                                   rust::Slice<const std::int32_t> indices,
                                   rust::Slice<const std::int32_t> lengths);

}  // namespace decode::bridge
