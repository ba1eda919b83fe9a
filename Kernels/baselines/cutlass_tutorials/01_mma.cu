// Tutorial 01: threads copy the operands.
#include "Kernels/baselines/cutlass_tutorials/tutorial.cuh"

namespace tutorial_01 {
#include "01_mma_sm100.cu"
}  // namespace tutorial_01

RUN_TUTORIAL(run_01, tutorial_01)
