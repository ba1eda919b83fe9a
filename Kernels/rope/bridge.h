// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <memory>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace rope::bridge {

using device::Plan;
using device::Variant;
struct Rope;

void check(const Rope& rope, Variant variant);
std::unique_ptr<Plan> plan(const Rope& rope, Variant variant);

}  // namespace rope::bridge
