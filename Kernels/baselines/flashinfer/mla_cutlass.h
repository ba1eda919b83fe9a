// Latent attention with FlashInfer's CUTLASS kernel.
#pragma once

#include <memory>

#include "Kernels/baselines/flashinfer/page_rows.h"

namespace fi {

// Whether this build has code for sm_100a.
bool has_mla_cutlass();

// One query per sequence and 128 heads; throws for anything else.
std::unique_ptr<Planned> plan_mla_cutlass(const JoinedMla& step);

}  // namespace fi
