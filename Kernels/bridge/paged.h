// Plans of kernels over a paged cache: cut on the host, with a workspace on the device.
#pragma once

#include <memory>
#include <utility>

#include "Kernels/bridge/facts.h"
#include "Kernels/bridge/plan.h"
#include "Kernels/device/memory.h"
#include "Kernels/device/paged/carver.h"

namespace device {

// `carve(carver, cut)` returns the sections of the workspace, `fill(cut, workspace)` copies the cut
// there, and `launch(cut, workspace, stream)` runs it.
template <class Cut, class Carve, class Fill, class Launch>
std::unique_ptr<Plan> paged_plan(Cut cut, const Carve& carve, const Fill& fill, Launch launch) {
    Carver sizes;
    carve(sizes, cut);
    const auto memory = std::make_shared<Memory>(sizes.bytes());
    Carver parts(memory->start());
    const auto workspace = carve(parts, cut);
    fill(cut, workspace);
    const std::string facts =
        Facts().add("plan", describe(cut)).add("workspace_bytes", memory->bytes()).json();
    return std::make_unique<Plan>([=, keep = memory, cut = std::move(cut)](
                                      cudaStream_t stream) { launch(cut, workspace, stream); },
                                  facts);
}

}  // namespace device
