// What both variants ask of their parameters.
#pragma once

#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/nsa/nsa.h"

namespace nsa {

inline void check(const Selected& params) {
    const auto require = [](bool holds, const std::string& what) {
        if (!holds) throw std::invalid_argument(what);
    };
    require(params.sequence >= 1 && params.tokens >= 1 && params.tokens % params.sequence == 0,
            std::to_string(params.tokens) + " tokens are no sequences of " +
                std::to_string(params.sequence));
    require(
        params.groups >= 1 && params.heads % params.groups == 0,
        std::to_string(params.heads) + " heads for " + std::to_string(params.groups) + " groups");
    require(params.block >= 1 && params.selected >= 1, "no block is selected");
    require(params.tokens * params.heads < std::numeric_limits<int>::max(),
            std::to_string(params.tokens) + " tokens are too many");
    device::require_aligned("queries", params.queries);
    device::require_aligned("keys", params.keys);
    device::require_aligned("values", params.values);
    device::require_aligned("out", params.out);
}

}  // namespace nsa
