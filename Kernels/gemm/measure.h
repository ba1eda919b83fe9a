// Which of several configurations is the fastest: by running them.
#pragma once

#include <cstddef>
#include <vector>

#include "Kernels/gemm/gemm.h"

namespace gemm {

// The index of the fastest of the candidates on these tensors, with cold caches; the first unless
// another one is clearly faster. Writes the result, many times, and waits.
std::size_t fastest_of(const std::vector<Config>& candidates, const Gemm& params);

}  // namespace gemm
