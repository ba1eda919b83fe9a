#include "Kernels/device/launch.h"
#include "Kernels/nsa/check.h"
#include "Kernels/nsa/nsa.h"
#include "Kernels/nsa/selected.cuh"

namespace nsa {
namespace {

// From a sweep on an H200 (bf16, 512 to 8192 tokens; 1, 2, 4 warps; chunks of 16, 32, 64; 2 to 4
// stages): one warp a token and two stages are best everywhere, more of either only cost occupancy.
constexpr int kWarps = 1;
constexpr int kStages = 2;

template <class T, int kDim, int kChunk>
void launch_traits(const Selected& params, cudaStream_t stream) {
    using Traits = SelectedTraits<T, kDim, kWarps, kChunk, kStages>;
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(params.tokens * params.groups));
    shape.block = dim3(kWarps * 32);
    shape.shared_bytes = Traits::kSharedBytes;
    device::launch("nsa_selected", selected_kernel<Traits>, shape, stream, params);
}

template <class T>
void launch_type(const Selected& params, cudaStream_t stream) {
    // Chunks of 32 are 9 to 17 % faster with short heads, those of 16 6 % with long ones.
    if (params.dim == 128) return launch_traits<T, 128, 16>(params, stream);
    return params.block % 32 == 0 ? launch_traits<T, 64, 32>(params, stream)
                                  : launch_traits<T, 64, 16>(params, stream);
}

}  // namespace

void launch(const Selected& params, cudaStream_t stream) {
    check(params);
    check_tuned(params);
    require(params.selected <= kMaxSelected,
            "selected is " + std::to_string(params.selected) + "; up to 32 are supported");
    require(params.block % kBlockMultiple == 0,
            "block is " + std::to_string(params.block) + "; a multiple of 16 is supported");
    return params.dtype == device::Dtype::F16 ? launch_type<__half>(params, stream)
                                              : launch_type<__nv_bfloat16>(params, stream);
}

}  // namespace nsa
