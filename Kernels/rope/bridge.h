// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace rope::bridge {

struct Rope;
enum class Variant : std::uint8_t;

void launch(const Rope& rope, Variant variant, std::size_t stream);

}  // namespace rope::bridge
