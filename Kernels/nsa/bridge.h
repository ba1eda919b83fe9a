// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <memory>

#include "Kernels/bridge/plan.h"
#include "Kernels/nsa/nsa.h"
#include "rust/cxx.h"

namespace nsa::bridge {

using device::Plan;
using device::Variant;
struct Nsa;

void check(const Nsa& given, Variant variant);
std::unique_ptr<Plan> plan(const Nsa& given, Variant variant);

}  // namespace nsa::bridge
