// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <memory>

#include "Kernels/activations/activation.h"
#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace activations::bridge {

using device::Plan;
using device::Variant;
struct Activation;
struct Packed;

void check(const Activation& given, Variant variant);
void check_packed(const Packed& given, Variant variant);
std::unique_ptr<Plan> plan(const Activation& given, Variant variant);
std::unique_ptr<Plan> plan_packed(const Packed& given, Variant variant);

}  // namespace activations::bridge
