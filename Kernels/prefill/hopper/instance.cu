#include "Kernels/prefill/hopper/launch.cuh"

template void prefill::hopper::launch<H2H_ELEMENT>(const Prefill&, const Config&, cudaStream_t);
