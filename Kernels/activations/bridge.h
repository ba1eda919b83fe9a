// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace activations::bridge {

struct Activation;
struct Packed;
enum class Variant : std::uint8_t;

void packed(const Packed& packed, Variant variant, std::size_t stream);
void launch(const Activation& activation, Variant variant, std::size_t stream);

}  // namespace activations::bridge
