#include <flashinfer/pos_enc.cuh>
#include <stdexcept>
#include <string>
#include <vector>

#include "Kernels/baselines/flashinfer/elementwise/elementwise.h"
#include "Kernels/device/launch.h"

namespace fi {
namespace {

using T = nv_bfloat16;

// The interleaved kernel loads twice the cosines and sines that it uses, past the last row's end.
constexpr std::size_t kOverreadBytes = 256;

// The choice and launch of `BatchQKApplyRotaryPosIdsCosSinCache`, for the head sizes of the suites:
// calling it would also compile its other sizes and its quantising kernels.
template <bool kInterleaved, std::uint32_t kDim>
void launch_dim(Rope p, const RopeTables& tables, cudaStream_t stream) {
    constexpr std::uint32_t kPer = 16 / sizeof(T);
    constexpr std::uint32_t kThreadsOfHead = kDim / kPer;
    constexpr std::uint32_t kThreads = 128;
    constexpr std::uint32_t kTokens = kThreads / kThreadsOfHead;
    const auto whole_token =
        flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<kInterleaved, kDim, kPer,
                                                              kThreadsOfHead, T, std::int32_t>;
    const auto one_head = flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheHeadParallelismKernel<
        kInterleaved, kDim, kPer, kThreadsOfHead, T, std::int32_t>;
    int blocks_of_sm = 0;
    device::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_of_sm, whole_token,
                                                                static_cast<int>(kThreads), 0),
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    const std::uint32_t blocks = (p.tokens + kTokens - 1) / kTokens;
    const bool fills_device =
        blocks >= static_cast<std::uint32_t>(blocks_of_sm * device::multiprocessors());
    device::Launch shape;
    shape.grid = dim3(blocks, fills_device ? 1 : p.query_heads + p.key_heads);
    shape.block = dim3(kThreadsOfHead, kTokens);
    const std::size_t head = kDim;
    const std::size_t query_token = p.query_heads * head;
    const std::size_t key_token = p.key_heads * head;
    T* queries = static_cast<T*>(p.queries);
    T* keys = static_cast<T*>(p.keys);
    device::launch("flashinfer rope", fills_device ? whole_token : one_head, shape, stream, queries,
                   keys, queries, keys, tables.cos_and_sin(), tables.positions(), p.tokens,
                   p.query_heads, p.key_heads, kDim, query_token, head, key_token, head,
                   query_token, head, key_token, head);
}

}  // namespace

RopeTables::RopeTables(const float* cos, const float* sin, std::uint32_t sequence,
                       std::uint32_t dim, std::uint32_t tokens)
    : cache_(std::size_t{sequence} * dim * sizeof(float) + kOverreadBytes),
      positions_(std::size_t{tokens} * sizeof(std::int32_t)) {
    const std::size_t half = dim / 2 * sizeof(float);
    device::check(cudaMemset(cache_.address(), 0, cache_.bytes()), "cudaMemset of a RoPE cache");
    for (const auto& [table, offset] : {std::pair{cos, std::uint32_t{0}}, {sin, dim / 2}}) {
        device::check(cudaMemcpy2D(cos_and_sin() + offset, 2 * half, table, half, half, sequence,
                                   cudaMemcpyDeviceToDevice),
                      "copy of a RoPE table");
    }
    std::vector<std::int32_t> positions(tokens);
    for (std::uint32_t token = 0; token < tokens; ++token) {
        positions[token] = static_cast<std::int32_t>(token % sequence);
    }
    device::check(cudaMemcpy(positions_.address(), positions.data(), positions_.bytes(),
                             cudaMemcpyHostToDevice),
                  "copy of positions");
    device::check(cudaDeviceSynchronize(), "copy of RoPE tables");
}

void launch(const Rope& params, const RopeTables& tables, cudaStream_t stream) {
    if (params.dim == 64) {
        return params.interleaved ? launch_dim<true, 64>(params, tables, stream)
                                  : launch_dim<false, 64>(params, tables, stream);
    }
    if (params.dim == 128) {
        return params.interleaved ? launch_dim<true, 128>(params, tables, stream)
                                  : launch_dim<false, 128>(params, tables, stream);
    }
    throw std::invalid_argument("dim is " + std::to_string(params.dim) +
                                "; 64 and 128 are supported");
}

}  // namespace fi
