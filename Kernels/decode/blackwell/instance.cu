#include "Kernels/decode/blackwell/launch.cuh"

template void decode::blackwell::launch<H2H_ELEMENT, H2H_CACHE_BYTES>(const Arguments&,
                                                                      const Shape&, bool,
                                                                      const Plan&, cudaStream_t);
