// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "Kernels/device/memory.h"
#include "Kernels/mla/mla.h"
#include "rust/cxx.h"

namespace mla::bridge {

enum class Dtype : std::uint8_t;
enum class KernelChoice : std::uint8_t;
struct Problem;
struct Tensors;

// A planned step, with its device memory.
class Planned {
  public:
    Planned(const Problem& problem, KernelChoice choice, const Tensors& tensors,
            rust::Slice<const std::int32_t> indptr, rust::Slice<const std::int32_t> indices,
            rust::Slice<const std::int32_t> lengths);

    void enqueue(std::size_t stream) const;
    rust::String description() const { return describe(plan_); }
    std::size_t workspace_bytes() const { return memory_.bytes(); }

  private:
    MlaDecode params_;
    Plan plan_;
    device::Memory memory_;
    // What of the memory is whose.
    Workspace workspace_ = {};
};

std::unique_ptr<Planned> plan(const Problem& problem, KernelChoice choice, const Tensors& tensors,
                              rust::Slice<const std::int32_t> indptr,
                              rust::Slice<const std::int32_t> indices,
                              rust::Slice<const std::int32_t> lengths);

bool has_better(const Problem& problem);

void check_table(const Problem& problem, rust::Slice<const std::int32_t> indptr,
                 rust::Slice<const std::int32_t> indices, rust::Slice<const std::int32_t> lengths);

void enqueue_plain(const Problem& problem, const Tensors& tensors, std::size_t stream);

}  // namespace mla::bridge
