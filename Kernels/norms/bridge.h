// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <memory>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace norms::bridge {

using device::Plan;
using device::Variant;
struct Norm;

void check(const Norm& given, Variant variant);
std::unique_ptr<Plan> plan(const Norm& given, Variant variant);

}  // namespace norms::bridge
