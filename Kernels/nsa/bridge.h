// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rust/cxx.h"

namespace nsa::bridge {

struct Selected;
enum class Variant : std::uint8_t;

void launch(const Selected& selected, Variant variant, std::size_t stream);

}  // namespace nsa::bridge
