// The definition, one warp per query and head: each lane holds every 32nd element of the query and
// of the output, and the warp takes one key at a time.
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/launch.h"
#include "Kernels/prefill/prefill.h"

namespace prefill {
namespace {

constexpr int kWarpsPerBlock = 8;
constexpr int kMostPerLane = 8;

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    return value;
}

template <class T>
__global__ void prefill_plain_kernel(const __grid_constant__ PlainPrefill params) {
    const Prefill& base = params.base;
    const std::int64_t place = std::int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.x / 32;
    if (place >= std::int64_t{base.total_q} * base.heads) return;
    const int lane = threadIdx.x % 32;
    const int row = static_cast<int>(place / base.heads);
    const int head = static_cast<int>(place % base.heads);
    const int kv_head = head / (base.heads / base.kv_heads);
    int sequence = 0;
    while (params.starts_q[sequence + 1] <= row) ++sequence;
    const int queries = params.starts_q[sequence + 1] - params.starts_q[sequence];
    const int first_key = params.starts_kv[sequence];
    const int keys = params.starts_kv[sequence + 1] - first_key;
    const int seen = base.causal ? keys - queries + row - params.starts_q[sequence] + 1 : keys;
    const int per_query = base.head_dim / 32;
    const int per_value = base.value_dim / 32;

    float query[kMostPerLane];
    float sums[kMostPerLane] = {};
    const T* q = static_cast<const T*>(base.q) + place * base.head_dim;
    for (int index = 0; index < per_query; ++index) {
        query[index] = device::to_float(q[index * 32 + lane]);
    }
    float largest = -INFINITY;
    float total = 0.0f;
    for (int key = 0; key < seen; ++key) {
        const std::int64_t start = std::int64_t{first_key + key} * base.kv_heads + kv_head;
        const T* k = static_cast<const T*>(base.k) + start * base.head_dim;
        const T* v = static_cast<const T*>(base.v) + start * base.value_dim;
        float product = 0.0f;
        for (int index = 0; index < per_query; ++index) {
            product += query[index] * device::to_float(k[index * 32 + lane]);
        }
        const float score = warp_sum(product) * base.scale;
        const float moved = fmaxf(largest, score);
        const float factor = expf(largest - moved);
        const float weight = expf(score - moved);
        largest = moved;
        total = total * factor + weight;
        for (int index = 0; index < per_value; ++index) {
            sums[index] = sums[index] * factor + weight * device::to_float(v[index * 32 + lane]);
        }
    }
    T* out = static_cast<T*>(base.out) + place * base.value_dim;
    for (int index = 0; index < per_value; ++index) {
        out[index * 32 + lane] = device::from_float<T>(sums[index] / total);
    }
    if (base.lse != nullptr && lane == 0) base.lse[place] = largest + logf(total);
}

}  // namespace

void launch_plain(const PlainPrefill& params, cudaStream_t stream) {
    const std::int64_t warps = std::int64_t{params.base.total_q} * params.base.heads;
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>((warps + kWarpsPerBlock - 1) / kWarpsPerBlock));
    shape.block = dim3(kWarpsPerBlock * 32);
    device::dispatch<__half, __nv_bfloat16>(params.base.dtype, [&](auto element) {
        device::launch("prefill_plain", prefill_plain_kernel<decltype(element)>, shape, stream,
                       params);
    });
}

}  // namespace prefill
