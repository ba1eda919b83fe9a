#include "Kernels/nsa/check.h"
#include "Kernels/nsa/selected.cuh"

namespace nsa {
namespace {

// From a sweep on an H200 (bf16, 512 to 8192 tokens; 1, 2, 4 warps; chunks of 16, 32, 64; 2 to 4
// stages): one warp per token and two stages are best; more of either only costs occupancy.
constexpr int kWarps = 1;
constexpr int kStages = 2;

template <class T, int kDim, int kChunk>
device::Enqueue prepare_traits(const Selected& params) {
    using Traits = SelectedTraits<T, kDim, kWarps, kChunk, kStages>;
    device::Launch shape = device::blocks_of(params.tokens * params.groups, kWarps * 32);
    shape.shared_bytes = Traits::kSharedBytes;
    return device::prepare("nsa_selected", selected_kernel<Traits>, shape, params);
}

}  // namespace

void check(const Selected& params) {
    check_plain(params);
    check_tuned(params);
    require(params.selected <= 32,
            std::to_string(params.selected) + " selected blocks; up to 32 are supported");
    require(params.block % 16 == 0,
            "block is " + std::to_string(params.block) + "; multiples of 16 are supported");
}

device::Enqueue prepare(const Selected& params) {
    check(params);
    check_addresses(params);
    return device::dispatch<__half, __nv_bfloat16>(params.dtype, [&](auto element) {
        using T = decltype(element);
        // Chunks of 32 are 9 to 17 % faster for short heads, those of 16 6 % for long ones.
        if (params.dim == 128) return prepare_traits<T, 128, 16>(params);
        return params.block % 32 == 0 ? prepare_traits<T, 64, 32>(params)
                                      : prepare_traits<T, 64, 16>(params);
    });
}

}  // namespace nsa
