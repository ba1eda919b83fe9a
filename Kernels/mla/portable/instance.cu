#include "Kernels/mla/portable/launch.cuh"

template void mla::portable::launch<H2H_ELEMENT, 1>(const Arguments&, const Plan&, cudaStream_t);
template void mla::portable::launch<H2H_ELEMENT, 2>(const Arguments&, const Plan&, cudaStream_t);
