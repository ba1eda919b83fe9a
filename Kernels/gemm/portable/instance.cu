#include "Kernels/gemm/portable/launch.cuh"

template void gemm::portable::launch<H2H_ELEMENT>(const Gemm&, const Config&, cudaStream_t);
