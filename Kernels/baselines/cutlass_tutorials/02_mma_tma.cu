// Tutorial 02: TMA copies the operands.
#include "Kernels/baselines/cutlass_tutorials/tutorial.cuh"

namespace tutorial_02 {
#include "02_mma_tma_sm100.cu"
}  // namespace tutorial_02

RUN_TUTORIAL(run_02, tutorial_02)
