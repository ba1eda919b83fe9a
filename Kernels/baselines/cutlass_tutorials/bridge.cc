#include "Kernels/baselines/cutlass_tutorials/bridge.h"

#include <iterator>
#include <string>

#include "Kernels/baselines/cutlass_tutorials/gemm.h"
#include "Kernels/baselines/cutlass_tutorials/lib.rs.h"
#include "Kernels/device/require.h"

namespace cutlass_tutorials::bridge {

void run(std::uint8_t tutorial, const Product& product) {
    static constexpr void (*kTutorials[])(const Gemm&) = {run_01, run_02, run_03, run_04, run_05};
    if (tutorial < 1 || tutorial > std::size(kTutorials)) {
        device::refuse("there is no tutorial " + std::to_string(tutorial));
    }
    kTutorials[tutorial - 1](
        {reinterpret_cast<const void*>(product.a), reinterpret_cast<const void*>(product.b),
         reinterpret_cast<const float*>(product.c), reinterpret_cast<float*>(product.d), product.m,
         product.n, product.k, product.alpha, product.beta});
}

}  // namespace cutlass_tutorials::bridge
