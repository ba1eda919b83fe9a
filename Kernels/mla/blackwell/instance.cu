#include "Kernels/mla/blackwell/launch.cuh"

template void mla::blackwell::launch<H2H_ELEMENT, 1>(const Arguments&, const Plan&, const Shape&,
                                                     cudaStream_t);
template void mla::blackwell::launch<H2H_ELEMENT, 2>(const Arguments&, const Plan&, const Shape&,
                                                     cudaStream_t);
