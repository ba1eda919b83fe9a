// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rust/cxx.h"

namespace deep_gemm_baseline::bridge {

enum class Layout : std::uint8_t;
struct Gemm;
struct Choice;

// The library's choice for a shape; throws why it cannot run here.
Choice choice(const Gemm& gemm);
void enqueue(const Gemm& gemm, std::size_t stream);

}  // namespace deep_gemm_baseline::bridge
