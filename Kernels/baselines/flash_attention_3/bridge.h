// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <memory>

#include "Kernels/baselines/flash_attention_3/attention.h"
#include "Kernels/device/memory.h"
#include "rust/cxx.h"

namespace flash_attention_3::bridge {

struct Batch;
struct Tensors;

// Work that only needs a stream, with the memory that the library allocates in every call.
class Planned {
  public:
    Planned(const Batch& batch, const Tensors& tensors);
    void enqueue(std::size_t stream) const;

  private:
    device::Memory lse_;
    device::Memory schedule_;
    Attention attention_;
    Launch launch_;
};

rust::String kernel(const Batch& batch);
bool is_built(const Batch& batch);
std::unique_ptr<Planned> plan(const Batch& batch, const Tensors& tensors);

}  // namespace flash_attention_3::bridge
