#include "Kernels/decode/portable/launch.cuh"

template void decode::portable::launch<H2H_ELEMENT, H2H_CACHE_BYTES>(const Arguments&, const Shape&,
                                                                     const Plan&, cudaStream_t);
