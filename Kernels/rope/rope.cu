#include <algorithm>
#include <string>

#include "Kernels/device/launch.h"
#include "Kernels/rope/rope.cuh"
#include "Kernels/rope/rope.h"

namespace rope {
namespace {

void require_range(const char* name, std::int64_t value, std::int64_t most) {
    if (value < 1 || value > most) {
        throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + "; 1 to " +
                                    std::to_string(most) + " are supported");
    }
}

void check(const Rope& params) {
    require_range("tokens", params.tokens, std::int64_t{1} << 30);
    require_range("sequence", params.sequence, std::int64_t{1} << 30);
    require_range("query_heads", params.query_heads, 1024);
    require_range("key_heads", params.key_heads, 1024);
    require_range("dim", params.dim, 1024);
    if (params.dim % kDimMultiple != 0) {
        throw std::invalid_argument("dim is " + std::to_string(params.dim) +
                                    "; a multiple of 16 is supported");
    }
    device::require_aligned("queries", params.queries);
    device::require_aligned("keys", params.keys);
    device::require_aligned("cos", params.cos);
    device::require_aligned("sin", params.sin);
}

// Threads a block should have, for its loads to cover the latency of memory beside few others. With
// four heads a thread, few and large blocks are best: 2 % on an H200.
constexpr int wanted_threads(int heads) { return heads == 4 ? 480 : 384; }
constexpr int kMostThreads = 512;

// Heads of a token cut into `kHeads` a thread; more tokens where they are few.
template <class T, int kHeads>
device::Launch shape_of(const Rope& params) {
    const int lanes = params.dim / 2 / device::kPerPacket<T>;
    const int heads = params.query_heads + params.key_heads;
    const int teams = std::min((heads + kHeads - 1) / kHeads, kMostThreads / lanes);
    const int tokens = std::min(64, std::max(1, wanted_threads(kHeads) / (lanes * teams)));
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>((params.tokens + tokens - 1) / tokens));
    shape.block = dim3(static_cast<unsigned>(lanes), static_cast<unsigned>(teams),
                       static_cast<unsigned>(tokens));
    return shape;
}

template <class T, int kHeads>
bool covers(const Rope& params) {
    const int lanes = params.dim / 2 / device::kPerPacket<T>;
    return (kMostThreads / lanes) * kHeads >= params.query_heads + params.key_heads;
}

template <class T, bool kInterleaved, int kHeads>
void launch_heads(const Rope& params, cudaStream_t stream) {
    const RopeArguments arguments = {params.queries,
                                     params.keys,
                                     params.cos,
                                     params.sin,
                                     static_cast<std::uint32_t>(params.tokens),
                                     static_cast<std::uint32_t>(params.sequence),
                                     params.query_heads,
                                     params.key_heads,
                                     params.dim,
                                     params.pass == Pass::kForward ? 1.0f : -1.0f};
    device::launch("rope", rope_kernel<T, kInterleaved, kHeads>, shape_of<T, kHeads>(params),
                   stream, arguments);
}

template <class T, bool kInterleaved>
void launch_pairs(const Rope& params, cudaStream_t stream) {
    const int heads = params.query_heads + params.key_heads;
    if (heads <= 4) return launch_heads<T, kInterleaved, 1>(params, stream);
    // As measured on an H200, by 1 to 3 %.
    constexpr int kFewHeads = 48;
    constexpr int kManyHeads = 80;
    if constexpr (kInterleaved) {
        if (heads <= kFewHeads && covers<T, 2>(params)) {
            return launch_heads<T, kInterleaved, 2>(params, stream);
        }
    }
    if (heads <= kManyHeads && covers<T, 4>(params)) {
        return launch_heads<T, kInterleaved, 4>(params, stream);
    }
    if (covers<T, 8>(params)) return launch_heads<T, kInterleaved, 8>(params, stream);
    throw std::invalid_argument(std::to_string(heads) + " heads of " + std::to_string(params.dim) +
                                " elements are more than a block turns");
}

}  // namespace

void launch(const Rope& params, cudaStream_t stream) {
    check(params);
    device::dispatch_type(params.type, [&](auto element) {
        using T = decltype(element);
        if (params.interleaved) {
            launch_pairs<T, true>(params, stream);
        } else {
            launch_pairs<T, false>(params, stream);
        }
    });
}

namespace {

// Obvious on purpose: the reference that whole tensors are compared with.
template <class T>
__global__ void rope_plain_kernel(const __grid_constant__ Rope params) {
    const int half = params.dim / 2;
    const int all_heads = params.query_heads + params.key_heads;
    const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::int64_t token = index / half / all_heads;
    if (token >= params.tokens) return;
    const int pair = static_cast<int>(index % half);
    const int head = static_cast<int>(index / half % all_heads);
    T* start =
        head < params.query_heads
            ? static_cast<T*>(params.queries) + (token * params.query_heads + head) * params.dim
            : static_cast<T*>(params.keys) +
                  (token * params.key_heads + head - params.query_heads) * params.dim;
    T& first = start[params.interleaved ? 2 * pair : pair];
    T& second = start[params.interleaved ? 2 * pair + 1 : pair + half];
    const std::int64_t position = token % params.sequence * half + pair;
    const float cos = params.cos[position];
    const float sin = params.pass == Pass::kForward ? params.sin[position] : -params.sin[position];
    const float a = device::to_float(first);
    const float b = device::to_float(second);
    first = device::from_float<T>(a * cos - b * sin);
    second = device::from_float<T>(b * cos + a * sin);
}

}  // namespace

void launch_plain(const Rope& params, cudaStream_t stream) {
    constexpr int kThreads = 256;
    const std::int64_t pairs =
        params.tokens * (params.query_heads + params.key_heads) * (params.dim / 2);
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>((pairs + kThreads - 1) / kThreads));
    shape.block = dim3(kThreads);
    device::dispatch_type(params.type, [&](auto element) {
        device::launch("rope_plain", rope_plain_kernel<decltype(element)>, shape, stream, params);
    });
}

}  // namespace rope
