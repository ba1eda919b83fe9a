// Launches the portable kernel with the tiles that config.cc chooses from.
#pragma once

#include <stdexcept>

#include "Kernels/device/launch.h"
#include "Kernels/gemm/portable.cuh"
#include "Kernels/gemm/portable_launch.h"

namespace gemm {

template <class Traits>
void launch_portable_traits(const Gemm& params, const Config& config, cudaStream_t stream) {
    static_assert(sizeof(typename Traits::SharedStorage) <= 227 * 1024, "too much shared memory");
    const auto kernel = portable_kernel<Traits>;
    device::Launch launch;
    launch.grid = dim3(static_cast<unsigned>(config.blocks));
    launch.block = dim3(Traits::kThreads);
    launch.shared_bytes = sizeof(typename Traits::SharedStorage);
    device::launch("gemm_portable", kernel, launch, stream, params);
}

template <class T>
void launch_portable_type(const Gemm& params, const Config& config, cudaStream_t stream) {
    if (config.tile_rows == 128 && config.tile_columns == 128) {
        using Traits = PortableTraits<T, 128, 128, 64, 32, 4>;
        return launch_portable_traits<Traits>(params, config, stream);
    }
    if (config.tile_rows == 32 && config.tile_columns == 64) {
        using Traits = PortableTraits<T, 32, 64, 32, 16, 6>;
        return launch_portable_traits<Traits>(params, config, stream);
    }
    throw std::invalid_argument("no portable kernel has a tile of " + to_string(config));
}

}  // namespace gemm
