// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "Kernels/attention/prefill.h"
#include "Kernels/device/memory.h"
#include "rust/cxx.h"

namespace attention::bridge {

enum class Dtype : std::uint8_t;
enum class KernelChoice : std::uint8_t;
struct PrefillShape;
struct PrefillTensors;

// The choice of a kernel for one batch, and its tiles in device memory. Launches of one plan must
// not overlap.
class PrefillPlan {
  public:
    PrefillPlan(const Config& config, const Sequences& sequences);

    const Config& config() const { return config_; }
    const Tile* tiles() const { return static_cast<const Tile*>(memory_.start()) + 1; }
    WorkCounters* counters() const { return static_cast<WorkCounters*>(memory_.start()); }
    std::size_t tile_count() const { return tile_count_; }
    rust::String description() const { return describe(config_); }

  private:
    Config config_;
    std::size_t tile_count_ = 0;
    // The counters in the place of one tile, then the tiles.
    device::Memory memory_;
};

bool suits_wgmma(const PrefillShape& shape);
std::unique_ptr<PrefillPlan> plan_prefill(const PrefillShape& shape, KernelChoice choice,
                                          rust::Slice<const std::int32_t> starts_q,
                                          rust::Slice<const std::int32_t> starts_kv);
void prefill(const PrefillTensors& tensors, const PrefillShape& shape, const PrefillPlan& plan,
             std::size_t stream);
void plain_prefill(const PrefillTensors& tensors, const PrefillShape& shape, std::size_t sequences,
                   std::size_t stream);

}  // namespace attention::bridge
