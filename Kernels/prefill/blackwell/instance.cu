#include "Kernels/prefill/blackwell/launch.cuh"

template void prefill::blackwell::launch<H2H_ELEMENT>(const Prefill&, const Config&, cudaStream_t);
