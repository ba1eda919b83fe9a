// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/baselines/deep_gemm/gemm.h"
#include "Kernels/device/memory.h"
#include "rust/cxx.h"

namespace deep_gemm_baseline::bridge {

enum class Layout : std::uint8_t;
struct Gemm;
struct Choice;

// The library's choice for a shape; throws if it cannot run here.
Choice choice(const Gemm& gemm);

// A GEMM with its kernel; on sm_100a it holds the packed scales.
class Plan {
  public:
    explicit Plan(const Gemm& gemm);

    void enqueue(std::size_t stream) const;

  private:
    deep_gemm_baseline::Gemm gemm_ = {};
    Config config_ = {};
    Launch launch_ = nullptr;
    device::Memory packed_;
};

std::unique_ptr<Plan> plan(const Gemm& gemm);

}  // namespace deep_gemm_baseline::bridge
