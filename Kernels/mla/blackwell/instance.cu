#include "Kernels/mla/blackwell/launch.cuh"

template void mla::blackwell::launch<H2H_ELEMENT>(const Arguments&, const Plan&, const Shape&,
                                                  cudaStream_t);
