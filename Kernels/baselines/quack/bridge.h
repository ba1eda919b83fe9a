// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/cute/kernel.h"
#include "rust/cxx.h"

namespace quack::bridge {

struct Artifact;
struct Tensor;

// A kernel, loaded on the device that was current.
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

rust::Vec<Artifact> artifacts();
bool has_kernel(std::int32_t major, rust::Str name);
std::unique_ptr<Kernel> load_kernel(std::int32_t major, rust::Str name);
std::unique_ptr<Kernel> load_opened(rust::Str name, std::size_t init, std::size_t load,
                                    std::size_t entry, std::int32_t argument_count);

}  // namespace quack::bridge
