// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstdint>

namespace cutlass_tutorials::bridge {

struct Product;

void run(std::uint8_t tutorial, const Product& product);

}  // namespace cutlass_tutorials::bridge
