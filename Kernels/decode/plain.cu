#include "Kernels/decode/decode.h"
#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/fp8.cuh"
#include "Kernels/device/launch.h"

namespace decode {
namespace {

constexpr int kPlainWarps = 8;
constexpr int kMostPerLane = 8;

// An FP8 code, without its scale.
struct E4m3 {
    std::uint8_t code;
};

template <class T>
__device__ float widen(T value) {
    return device::to_float(value);
}
__device__ float widen(E4m3 value) { return device::e4m3_floats(value.code).x; }

struct PlainArguments {
    Decode params;
    const std::int32_t* indptr;
    const std::int32_t* lengths;
};

// Naive on purpose: the reference for whole tensors. One block per query and head; its warps take
// turns at tokens, each lane a few elements of a row.
template <class T, class Cache>
__global__ void decode_plain_kernel(const __grid_constant__ PlainArguments a) {
    const Shape& shape = a.params.shape;
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int per_lane = shape.head_dim / 32;
    const int head = blockIdx.x % shape.heads;
    const int token_row = blockIdx.x / shape.heads;
    const int sequence = token_row / shape.q_len;
    const int kv_head = head / (shape.heads / shape.kv_heads);
    const int visible = a.lengths[sequence] - shape.q_len + 1 + token_row % shape.q_len;
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * shape.head_dim;

    float q[kMostPerLane], sums[kMostPerLane] = {}, largest = -INFINITY, total = 0.0f;
    for (int i = 0; i < per_lane; ++i) {
        q[i] = device::to_float(static_cast<const T*>(a.params.q)[row + lane + 32 * i]);
    }
    for (int token = warp; token < visible; token += kPlainWarps) {
        const std::int64_t page = a.params.pages[a.indptr[sequence] + token / shape.page_size];
        const int in_page = token % shape.page_size;
        const std::int64_t cached =
            a.params.head_major ? (page * shape.kv_heads + kv_head) * shape.page_size + in_page
                                : (page * shape.page_size + in_page) * shape.kv_heads + kv_head;
        const Cache* key = static_cast<const Cache*>(a.params.k_pages) + cached * shape.head_dim;
        const Cache* value = static_cast<const Cache*>(a.params.v_pages) + cached * shape.head_dim;
        float score = 0.0f;
        for (int i = 0; i < per_lane; ++i) score += q[i] * widen(key[lane + 32 * i]);
        for (int distance = 16; distance > 0; distance /= 2) {
            score += __shfl_xor_sync(0xffffffffu, score, distance);
        }
        score *= a.params.scale;
        const float top = fmaxf(largest, score);
        const float factor = expf(largest - top);
        const float weight = expf(score - top);
        largest = top;
        total = total * factor + weight;
        for (int i = 0; i < per_lane; ++i) {
            sums[i] = sums[i] * factor + weight * widen(value[lane + 32 * i]);
        }
    }
    __shared__ float all_sums[kPlainWarps][32 * kMostPerLane];
    __shared__ float all_largest[kPlainWarps], all_totals[kPlainWarps];
    for (int i = 0; i < per_lane; ++i) all_sums[warp][lane + 32 * i] = sums[i];
    all_largest[warp] = largest;
    all_totals[warp] = total;
    // All warps' results are written before they are added.
    __syncthreads();
    for (int column = threadIdx.x; column < shape.head_dim; column += blockDim.x) {
        float top = -INFINITY, sum = 0.0f, weights = 0.0f;
        for (int w = 0; w < kPlainWarps; ++w) top = fmaxf(top, all_largest[w]);
        for (int w = 0; w < kPlainWarps; ++w) {
            const float factor = all_totals[w] > 0.0f ? expf(all_largest[w] - top) : 0.0f;
            sum += factor * all_sums[w][column];
            weights += factor * all_totals[w];
        }
        static_cast<T*>(a.params.out)[row + column] =
            device::from_float<T>(weights > 0.0f ? a.params.value_scale * (sum / weights) : 0.0f);
    }
}

template <class T>
void launch_type(const PlainArguments& arguments, const device::Launch& grid, cudaStream_t stream) {
    if (arguments.params.shape.cache_bytes == 1) {
        device::launch("decode_plain", decode_plain_kernel<T, E4m3>, grid, stream, arguments);
    } else {
        device::launch("decode_plain", decode_plain_kernel<T, T>, grid, stream, arguments);
    }
}

}  // namespace

void launch_plain(const Decode& params, const std::int32_t* indptr, const std::int32_t* lengths,
                  cudaStream_t stream) {
    const Shape& shape = params.shape;
    validate(shape);
    device::Launch grid;
    grid.grid = dim3(static_cast<unsigned>(shape.batch * shape.q_len * shape.heads));
    grid.block = dim3(32 * kPlainWarps);
    const PlainArguments arguments = {params, indptr, lengths};
    device::dispatch<__half, __nv_bfloat16>(params.dtype, [&](auto element) {
        launch_type<decltype(element)>(arguments, grid, stream);
    });
}

}  // namespace decode
