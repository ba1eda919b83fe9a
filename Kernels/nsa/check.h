// Requirements on the parameters of the branch kernels.
#pragma once

#include <limits>
#include <string>

#include "Kernels/device/dispatch.h"
#include "Kernels/nsa/nsa.h"

namespace nsa {

using device::require;

inline void check_branch(const Branch& params) {
    device::require_activation(params.dtype);
    require(params.sequence >= 1 && params.tokens >= 1 && params.tokens % params.sequence == 0,
            std::to_string(params.tokens) + " tokens do not divide into sequences of " +
                std::to_string(params.sequence));
    require(
        params.groups >= 1 && params.heads % params.groups == 0,
        std::to_string(params.heads) + " heads for " + std::to_string(params.groups) + " groups");
    require(params.tokens * params.heads < std::numeric_limits<int>::max(),
            std::to_string(params.tokens) + " tokens are too many");
}

// Limits of the tuned kernels: a group's heads are the rows of one product.
inline void check_tuned(const Branch& params) {
    const int per_group = params.heads / params.groups;
    require(per_group <= 16,
            std::to_string(per_group) + " heads in a group; up to 16 are supported");
    require(params.dim == 64 || params.dim == 128,
            "dim is " + std::to_string(params.dim) + "; 64 and 128 are supported");
    require(params.dtype != device::Dtype::F32, "f32 is not supported; use f16 or bf16");
}

inline void check_addresses(const Branch& params) {
    device::require_aligned("queries", params.queries);
    device::require_aligned("keys", params.keys);
    device::require_aligned("values", params.values);
    device::require_aligned("out", params.out);
}

}  // namespace nsa
