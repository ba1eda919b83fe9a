// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/flashinfer/elementwise/elementwise.h"
#include "rust/cxx.h"

namespace fi::elementwise {

enum class Gate : std::uint8_t;
struct ActAndMul;
struct Rope;

void act_and_mul(const ActAndMul& params, std::size_t stream);
std::unique_ptr<RopeTables> rope_tables(std::size_t cos, std::size_t sin, std::uint32_t sequence,
                                        std::uint32_t dim, std::uint32_t tokens);
void rope(const Rope& params, const RopeTables& tables, std::size_t stream);

}  // namespace fi::elementwise
