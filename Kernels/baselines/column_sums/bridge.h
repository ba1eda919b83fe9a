// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/device/memory.h"
#include "rust/cxx.h"

namespace column_sums::bridge {

struct PartialSum;
enum class WeightDtype : std::uint8_t;

using Workspace = device::Memory;

std::unique_ptr<Workspace> allocate_workspace(std::size_t bytes);
void sum_partials(rust::Slice<const PartialSum> sums, std::size_t rows, std::size_t columns,
                  WeightDtype dtype, std::size_t stream);

}  // namespace column_sums::bridge
