// Stands in for torch's header: FlashAttention-2's parameters hold a random state, which no kernel
// without dropout reads.
#pragma once

#include <cstdint>
#include <tuple>

namespace at {

struct PhiloxCudaState {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
};

}  // namespace at
