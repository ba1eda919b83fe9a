#include "Kernels/gemm/blackwell/launch.cuh"

template void gemm::blackwell::launch<H2H_ELEMENT>(const Gemm&, const Config&, cudaStream_t);
