// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstdint>
#include <memory>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace gemm::bridge {

using device::Variant;
enum class Layout : std::uint8_t;
struct Product;

rust::String choice(const Product& product, Variant variant);
std::unique_ptr<device::Plan> plan(const Product& product, Variant variant);
std::unique_ptr<device::Plan> measured_plan(const Product& product);

}  // namespace gemm::bridge
