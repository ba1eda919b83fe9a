#include "Kernels/mla/portable/launch.cuh"

template void mla::portable::launch<H2H_ELEMENT>(const Arguments&, const Plan&, cudaStream_t);
