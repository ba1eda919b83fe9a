#include "Kernels/mla/hopper/launch.cuh"

template void mla::hopper::launch<H2H_ELEMENT>(const Arguments&, const Plan&, const Shape&,
                                               cudaStream_t);
