// What the variants ask of their parameters.
#pragma once

#include <limits>
#include <string>

#include "Kernels/device/dispatch.h"
#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"
#include "Kernels/nsa/nsa.h"

namespace nsa {

using device::require;

inline void check_branch(const Branch& params) {
    require(params.sequence >= 1 && params.tokens >= 1 && params.tokens % params.sequence == 0,
            std::to_string(params.tokens) + " tokens are no sequences of " +
                std::to_string(params.sequence));
    require(
        params.groups >= 1 && params.heads % params.groups == 0,
        std::to_string(params.heads) + " heads for " + std::to_string(params.groups) + " groups");
    require(params.tokens * params.heads < std::numeric_limits<int>::max(),
            std::to_string(params.tokens) + " tokens are too many");
    device::require_aligned("queries", params.queries);
    device::require_aligned("keys", params.keys);
    device::require_aligned("values", params.values);
    device::require_aligned("out", params.out);
}

inline void check(const Selected& params) {
    check_branch(params);
    require(params.block >= 1 && params.selected >= 1, "no block is selected");
}

inline void check(const Banded& params) {
    check_branch(params);
    const char* what = params.reach == Reach::kWindow ? "a window" : "a block";
    require(params.size >= 1,
            std::string(what) + " of " + std::to_string(params.size) + " keys; give 1 or more");
}

// What the tuned kernels of the branches share.
inline void check_tuned(const Branch& params) {
    require(
        params.heads / params.groups <= kMaxHeadsPerGroup,
        std::to_string(params.heads / params.groups) + " heads in a group; up to 16 are supported");
    require(params.dim == 64 || params.dim == 128,
            "dim is " + std::to_string(params.dim) + "; use 64 or 128");
    require(params.dtype != device::Dtype::F32, "fp32 is not supported; use fp16 or bf16");
}

}  // namespace nsa
