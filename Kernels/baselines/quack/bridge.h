// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/cute/kernel.h"
#include "rust/cxx.h"

namespace quack::bridge {

struct Artifact;
struct PartialSum;
struct Tensor;
enum class WeightDtype : std::uint8_t;

// A kernel that is loaded on the device that was current.
class Kernel {
  public:
    explicit Kernel(const cute_kernels::Kernel& kernel) : kernel_(&kernel) {
        cute_kernels::load(kernel);
    }
    void launch(rust::Slice<const Tensor> tensors, rust::Slice<const std::uint32_t> scalars,
                std::size_t stream) const;

  private:
    const cute_kernels::Kernel* kernel_;
};

// Device memory that frees itself.
class Workspace {
  public:
    explicit Workspace(std::size_t bytes);
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    std::size_t address() const { return reinterpret_cast<std::size_t>(address_); }

  private:
    void* address_ = nullptr;
};

rust::Vec<Artifact> artifacts();
bool has_kernel(std::int32_t major, rust::Str name);
std::unique_ptr<Kernel> load_kernel(std::int32_t major, rust::Str name);
std::unique_ptr<Workspace> allocate_workspace(std::size_t bytes);
void sum_partials(rust::Slice<const PartialSum> sums, std::size_t rows, std::size_t columns,
                  WeightDtype dtype, std::size_t stream);

}  // namespace quack::bridge
