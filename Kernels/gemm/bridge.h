// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rust/cxx.h"

namespace gemm::bridge {

enum class Dtype : std::uint8_t;
enum class Layout : std::uint8_t;
enum class Variant : std::uint8_t;
struct Gemm;
struct Choice;

// Throws what is wrong with the shape.
void check(const Gemm& gemm);
Choice choice(const Gemm& gemm, Variant variant);
void enqueue(const Gemm& gemm, Variant variant, std::size_t stream);

}  // namespace gemm::bridge
