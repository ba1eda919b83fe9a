// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/flashinfer/elementwise/elementwise.h"
#include "Kernels/baselines/flashinfer/elementwise/norms.h"
#include "rust/cxx.h"

namespace fi::elementwise {

enum class Dtype : std::uint8_t;
enum class Gate : std::uint8_t;
struct Norm;
struct ActAndMul;
struct Rope;

void norm(const Norm& given, std::size_t stream);
void act_and_mul(const ActAndMul& params, std::size_t stream);
std::unique_ptr<RopeTables> rope_tables(std::size_t cos, std::size_t sin, std::uint32_t sequence,
                                        std::uint32_t dim, std::uint32_t tokens);
void rope(const Rope& params, const RopeTables& tables, std::size_t stream);

}  // namespace fi::elementwise
