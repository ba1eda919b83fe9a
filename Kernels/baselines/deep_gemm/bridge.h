// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "Kernels/baselines/deep_gemm/gemm.h"
#include "Kernels/device/memory.h"
#include "rust/cxx.h"

namespace deep_gemm_baseline::bridge {

enum class Layout : std::uint8_t;
enum class Operands : std::uint8_t;
struct Gemm;
struct Choice;

// The library's choice for a shape; throws if it cannot run here, but not if its kernel is not
// linked.
Choice choice(const Gemm& gemm);

// The same for an H100 or H200, and for a B200, without a device.
Choice choice_for_sm90(const Gemm& gemm);
Choice choice_for_b200(const Gemm& gemm);

// A GEMM with its kernel; on sm_100a it holds the packed scales.
class Plan {
  public:
    // With a kernel that was built on demand, if there is one.
    Plan(const Gemm& gemm, std::shared_ptr<const Built> built);

    void enqueue(std::size_t stream) const;
    // Packs the scales that the tensors hold now.
    void reread() const;

  private:
    deep_gemm_baseline::Gemm gemm_ = {};
    Config config_ = {};
    Target target_ = {};
    Launch launch_ = nullptr;
    std::shared_ptr<const Built> built_;
    device::Memory packed_;
    // Into packed_; empty where the kernel reads scales as they are.
    std::function<void()> pack_;
};

std::unique_ptr<Plan> plan(const Gemm& gemm);
std::unique_ptr<Plan> plan_built(const Gemm& gemm, rust::Slice<const std::uint8_t> code);

}  // namespace deep_gemm_baseline::bridge
