#include "Kernels/norms/few_rows_backward.cuh"
#include "Kernels/norms/norm_backward.cuh"

template device::Enqueue norms::prepare_backward_rows<false>(const NormBackward& params,
                                                             const Config& config);
template device::Enqueue norms::prepare_few_rows<false>(const NormBackward& params,
                                                        const Config& config);
