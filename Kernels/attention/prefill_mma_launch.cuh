// Launch of one instantiation of the mma.sync kernel.
#pragma once

#include "Kernels/attention/prefill_mma.cuh"
#include "Kernels/device/launch.h"

namespace attention {

template <class Traits>
void launch_mma(const Prefill& params, cudaStream_t stream) {
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(params.tile_count) * params.heads);
    shape.block = dim3(Traits::kThreads);
    shape.shared_bytes = sizeof(typename Traits::Storage);
    device::launch("prefill_mma", prefill_mma_kernel<Traits>, shape, stream, arguments_of(params));
}

}  // namespace attention
