// Tutorial 04: pairs of blocks, in clusters of 4 x 4.
#include "Kernels/baselines/cutlass_tutorials/tutorial.cuh"

namespace tutorial_04 {
#include "04_mma_tma_2sm_sm100.cu"
}  // namespace tutorial_04

RUN_TUTORIAL(run_04, tutorial_04)
