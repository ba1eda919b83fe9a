// Tutorial 05: pairs of blocks, and an epilogue with TMA.
#include "Kernels/baselines/cutlass_tutorials/tutorial.cuh"

namespace tutorial_05 {
#include "05_mma_tma_epi_sm100.cu"
}  // namespace tutorial_05

RUN_TUTORIAL(run_05, tutorial_05)
