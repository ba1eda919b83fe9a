// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/cute/kernel.h"
#include "rust/cxx.h"

namespace flash_attention::bridge {

struct Artifact;
struct Attention;

// A FlashAttention-4 kernel that is loaded on the device that was current.
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
void launch_flash_attention_2(const Attention& attention, bool dense, std::size_t stream);
std::unique_ptr<Workspace> allocate_workspace(std::size_t bytes);

}  // namespace flash_attention::bridge
