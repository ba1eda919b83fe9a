// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "Kernels/bridge/plan.h"
#include "rust/cxx.h"

namespace nsa::bridge {

struct Selected;
struct Banded;
struct Gated;
enum class Variant : std::uint8_t;

void selected(const Selected& params, Variant variant, std::size_t stream);
void banded(const Banded& params, Variant variant, std::size_t stream);
void gated(const Gated& params, Variant variant, std::size_t stream);

}  // namespace nsa::bridge
