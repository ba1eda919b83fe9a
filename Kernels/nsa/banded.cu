#include <algorithm>

#include "Kernels/device/launch.h"
#include "Kernels/nsa/banded.cuh"
#include "Kernels/nsa/check.h"

namespace nsa {
namespace {

// From a sweep on an H200 (bf16, 2048 to 65536 tokens; 2, 4, 8 warps; chunks of 16 to 128): 4 warps
// are best everywhere. Chunks of 64 are, but where a query sees at most 128 rows most of such a
// chunk is masked: those of 16 take 11 to 28 % less time there.
constexpr int kWarps = 4;
constexpr int kLongChunk = 64;
constexpr int kShortChunk = 16;
constexpr int kFewRows = 128;

// Rows that a query sees at most.
int most_rows(const Banded& params) {
    return params.reach == Reach::kWindow ? std::min(params.size, params.sequence)
                                          : params.sequence / params.size;
}

template <class T, int kDim, int kChunk>
void launch_traits(const Banded& params, cudaStream_t stream) {
    using Traits = BandedTraits<T, kDim, kWarps, kChunk>;
    const int tokens_of_tile = Traits::kTileRows / (params.heads / params.groups);
    const int tiles = device::divide_up(params.sequence, tokens_of_tile);
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(params.groups),
                      static_cast<unsigned>(params.tokens / params.sequence));
    shape.block = dim3(Traits::kThreads);
    shape.shared_bytes = Traits::kSharedBytes;
    device::launch("nsa_banded", banded_kernel<Traits>, shape, stream, params);
}

template <class T, int kDim>
void launch_dim(const Banded& params, cudaStream_t stream) {
    return most_rows(params) <= kFewRows ? launch_traits<T, kDim, kShortChunk>(params, stream)
                                         : launch_traits<T, kDim, kLongChunk>(params, stream);
}

template <class T>
void launch_type(const Banded& params, cudaStream_t stream) {
    return params.dim == 64 ? launch_dim<T, 64>(params, stream)
                            : launch_dim<T, 128>(params, stream);
}

}  // namespace

void launch(const Banded& params, cudaStream_t stream) {
    check(params);
    check_tuned(params);
    constexpr int kMostSequences = 65535;
    require(params.tokens / params.sequence <= kMostSequences && params.groups <= kMostSequences,
            std::to_string(params.tokens / params.sequence) + " sequences and " +
                std::to_string(params.groups) + " groups; up to 65535 are supported");
    return params.dtype == device::Dtype::F16 ? launch_type<__half>(params, stream)
                                              : launch_type<__nv_bfloat16>(params, stream);
}

}  // namespace nsa
