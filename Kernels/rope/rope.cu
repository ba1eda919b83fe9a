#include <algorithm>
#include <string>

#include "Kernels/device/dispatch.h"
#include "Kernels/device/integers.h"
#include "Kernels/device/launch.h"
#include "Kernels/rope/rope.cuh"
#include "Kernels/rope/rope.h"

namespace rope {
namespace {

void require_range(const char* name, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return;
    device::refuse(std::string(name) + " is " + std::to_string(value) + "; 1 to " +
                   std::to_string(most) + " are supported");
}

void check_all(const Rope& params) {
    check(params);
    device::require_aligned("queries", params.queries);
    device::require_aligned("keys", params.keys);
    device::require_aligned("cos", params.cos);
    device::require_aligned("sin", params.sin);
}

template <class T, bool kInterleaved, int kUnits>
device::Enqueue prepare_units(const Rope& params) {
    const int packets = params.dim / (kUnits * device::kPerPacket<T>);
    const int lanes = kInterleaved ? packets : packets / 2;
    const int teams = std::max(1, kThreads / lanes);
    const auto rows_of = [&](void* start, int heads) {
        return Rows{start, static_cast<std::uint32_t>(params.tokens * heads),
                    device::Divider(heads)};
    };
    const auto blocks_of = [&](const Rows& rows) {
        return device::divide_up(rows.count, static_cast<std::uint32_t>(teams));
    };
    RopeArguments arguments = {rows_of(params.queries, params.query_heads),
                               rows_of(params.keys, params.key_heads),
                               0,
                               device::Divider(params.sequence),
                               params.cos,
                               params.sin,
                               params.dim,
                               params.pass == Pass::kForward ? 1.0f : -1.0f};
    arguments.query_blocks = blocks_of(arguments.queries);
    const std::int64_t blocks = std::int64_t{arguments.query_blocks} + blocks_of(arguments.keys);
    return device::prepare("rope", rope_kernel<T, kInterleaved, kUnits>,
                           device::blocks_of(blocks, dim3(lanes, teams)), arguments);
}

template <class T, bool kInterleaved>
device::Enqueue prepare_pairs(const Rope& params) {
    // What a thread's packets are part of.
    const int run = kInterleaved ? params.dim : params.dim / 2;
    return device::with_units({params.queries, params.keys}, [&](auto units) {
        if constexpr (units == 2) {
            if (run * sizeof(T) % 32 != 0) return prepare_units<T, kInterleaved, 1>(params);
        }
        return prepare_units<T, kInterleaved, units>(params);
    });
}

// Naive on purpose: the reference for whole tensors.
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

void check(const Rope& params) {
    require_range("tokens", params.tokens, std::int64_t{1} << 30);
    require_range("sequence", params.sequence, std::int64_t{1} << 30);
    require_range("query_heads", params.query_heads, 1024);
    require_range("key_heads", params.key_heads, 1024);
    require_range("dim", params.dim, 1024);
    // Rows are counted in 32 bits; the division is exact up to 31.
    constexpr std::int64_t kMostRows = (std::int64_t{1} << 31) - 1;
    require_range("tokens * query_heads", params.tokens * params.query_heads, kMostRows);
    require_range("tokens * key_heads", params.tokens * params.key_heads, kMostRows);
    // Then half a head is whole 16-byte packets.
    device::require(params.dim % 16 == 0,
                    "dim is " + std::to_string(params.dim) + "; a multiple of 16 is supported");
    device::require_activation(params.dtype);
}

device::Enqueue prepare(const Rope& params) {
    check_all(params);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        using T = decltype(element);
        return params.interleaved ? prepare_pairs<T, true>(params)
                                  : prepare_pairs<T, false>(params);
    });
}

device::Enqueue prepare_plain(const Rope& params) {
    check_all(params);
    const std::int64_t pairs =
        params.tokens * (params.query_heads + params.key_heads) * (params.dim / 2);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        return device::prepare("rope_plain", rope_plain_kernel<decltype(element)>,
                               device::cover(pairs, 256), params);
    });
}

}  // namespace rope
