#include "Kernels/gemm/hopper/launch.cuh"

template void gemm::hopper::launch<H2H_ELEMENT>(const Gemm&, const Config&, cudaStream_t);
