#include "Kernels/prefill/portable/launch.cuh"

template void prefill::portable::launch<H2H_ELEMENT>(const Prefill&, const Config&, cudaStream_t);
