// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <memory>

#include "Kernels/bridge/plan.h"
#include "Kernels/quantize/quantize.h"
#include "rust/cxx.h"

namespace quantize::bridge {

using device::Plan;
using device::Variant;
struct Quantization;
struct NormQuantization;

void check(const Quantization& given, Variant variant);
std::unique_ptr<Plan> plan(const Quantization& given, Variant variant);

void check_norm(const NormQuantization& given, Variant variant);
std::unique_ptr<Plan> plan_norm(const NormQuantization& given, Variant variant);

}  // namespace quantize::bridge
