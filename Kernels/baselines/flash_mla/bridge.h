// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/flash_mla/decode.h"
#include "rust/cxx.h"

namespace flash_mla::bridge {

struct Step;
struct Tensors;
struct PageTable;

bool is_built();
bool fits(const Step& step, std::int32_t multiprocessors);
std::unique_ptr<Planned> plan(const Step& step, const Tensors& tensors, const PageTable& table);
void enqueue(const Planned& planned, std::size_t stream);
double plan_microseconds(const Planned& planned);
rust::String kernel_name(const Planned& planned);

}  // namespace flash_mla::bridge
