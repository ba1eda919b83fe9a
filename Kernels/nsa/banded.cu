#include <algorithm>

#include "Kernels/nsa/banded.cuh"
#include "Kernels/nsa/check.h"

namespace nsa {
namespace {

// From a sweep on an H200 (bf16, 2048 to 65536 tokens; 2, 4, 8 warps; chunks of 16 to 128): 4 warps
// are best everywhere. So are chunks of 64, unless a query sees at most 128 rows: then most of such
// a chunk is masked, and chunks of 16 take 11 to 28 % less time.
constexpr int kWarps = 4;
constexpr int kLongChunk = 64;
constexpr int kShortChunk = 16;
constexpr int kFewRows = 128;

// The most rows that a query sees.
int most_rows(const Banded& params) {
    return params.reach == Reach::kWindow ? std::min(params.size, params.sequence)
                                          : params.sequence / params.size;
}

template <class T, int kDim, int kChunk>
device::Enqueue prepare_traits(const Banded& params) {
    using Traits = BandedTraits<T, kDim, kWarps, kChunk>;
    const int tokens_of_tile = Traits::kTileRows / (params.heads / params.groups);
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(device::divide_up(params.sequence, tokens_of_tile)),
                      static_cast<unsigned>(params.groups),
                      static_cast<unsigned>(params.tokens / params.sequence));
    shape.block = dim3(Traits::kThreads);
    shape.shared_bytes = Traits::kSharedBytes;
    return device::prepare("nsa_banded", banded_kernel<Traits>, shape, params);
}

template <class T, int kDim>
device::Enqueue prepare_dim(const Banded& params) {
    return most_rows(params) <= kFewRows ? prepare_traits<T, kDim, kShortChunk>(params)
                                         : prepare_traits<T, kDim, kLongChunk>(params);
}

}  // namespace

void check(const Banded& params) {
    check_plain(params);
    check_tuned(params);
    constexpr int kMostSequences = 65535;
    require(params.tokens / params.sequence <= kMostSequences && params.groups <= kMostSequences,
            std::to_string(params.tokens / params.sequence) + " sequences and " +
                std::to_string(params.groups) + " groups; up to 65535 are supported");
}

device::Enqueue prepare(const Banded& params) {
    check(params);
    check_addresses(params);
    return device::dispatch<__half, __nv_bfloat16>(params.dtype, [&](auto element) {
        using T = decltype(element);
        return params.dim == 64 ? prepare_dim<T, 64>(params) : prepare_dim<T, 128>(params);
    });
}

}  // namespace nsa
