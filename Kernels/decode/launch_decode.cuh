// Launch of the decode kernel for one type of the cache; each is a translation unit of its own.
#pragma once

#include "Kernels/decode/decode.cuh"
#include "Kernels/device/launch.h"

namespace decode {

template <class Tr>
void launch_traits(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    static_assert(
        kWarps * sizeof(WarpStorage<Tr>) + 2 * 1024 <= 228 * 1024,
        "more than the shared memory of a multiprocessor, for two blocks of half the warps");
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(plan.blocks));
    shape.block = dim3(static_cast<unsigned>(32 * plan.block_warps));
    shape.shared_bytes = plan.block_warps * sizeof(WarpStorage<Tr>);
    device::launch("decode", decode_kernel<Tr>, shape, stream, arguments);
}

template <class T, int kCacheBytes = 2>
void launch_type(const Arguments& arguments, const Shape& shape, const Plan& plan,
                 cudaStream_t stream) {
    if (shape.head_dim == 64 && plan.config.row_tiles == 1) {
        launch_traits<Traits<T, 64, 1, kCacheBytes>>(arguments, plan, stream);
    } else if (shape.head_dim == 64) {
        launch_traits<Traits<T, 64, 2, kCacheBytes>>(arguments, plan, stream);
    } else if (plan.config.row_tiles == 1) {
        launch_traits<Traits<T, 128, 1, kCacheBytes>>(arguments, plan, stream);
    } else {
        launch_traits<Traits<T, 128, 2, kCacheBytes>>(arguments, plan, stream);
    }
}

void launch_bf16(const Arguments& arguments, const Shape& shape, const Plan& plan,
                 cudaStream_t stream);
void launch_f16(const Arguments& arguments, const Shape& shape, const Plan& plan,
                cudaStream_t stream);
void launch_fp8_cache(const Arguments& arguments, const Shape& shape, const Plan& plan,
                      cudaStream_t stream);

}  // namespace decode
