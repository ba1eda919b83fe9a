// Tutorial 03: clusters of 4 x 4 blocks share their operands.
#include "Kernels/baselines/cutlass_tutorials/tutorial.cuh"

namespace tutorial_03 {
#include "03_mma_tma_multicast_sm100.cu"
}  // namespace tutorial_03

RUN_TUTORIAL(run_03, tutorial_03)
