// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/cute/kernel.h"
#include "Kernels/device/memory.h"
#include "rust/cxx.h"

namespace flash_attention::bridge {

struct Artifact;
struct Attention;

// A FlashAttention-4 kernel, loaded on the device that was current.
class Kernel {
  public:
    explicit Kernel(const cute_kernels::Kernel& kernel) : kernel_(&kernel) {
        cute_kernels::load(kernel);
    }
    void launch_varlen(const Attention& attention, std::size_t stream) const;
    void launch_dense(const Attention& attention, std::size_t stream) const;

  private:
    const cute_kernels::Kernel* kernel_;
};

using Workspace = device::Memory;

rust::Vec<Artifact> artifacts();
bool has_kernel(std::int32_t major, rust::Str name);
std::unique_ptr<Kernel> load_kernel(std::int32_t major, rust::Str name);
std::unique_ptr<Kernel> load_opened(rust::Str name, std::size_t init, std::size_t load,
                                    std::size_t entry, std::int32_t argument_count);
void launch_flash_attention_2(const Attention& attention, bool dense, std::size_t stream);
std::unique_ptr<Workspace> allocate_workspace(std::size_t bytes);

}  // namespace flash_attention::bridge
