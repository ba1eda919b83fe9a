#include "Kernels/device/convert.cuh"
#include "Kernels/device/dispatch.h"
#include "Kernels/device/fp8.cuh"
#include "Kernels/device/launch.h"
#include "Kernels/mla/mla.h"

namespace mla {
namespace {

constexpr int kPlainWarps = 8;
constexpr int kLatentPerLane = kLatent / 32;
constexpr int kRopePerLane = kRope / 32;

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
    MlaDecode params;
    const std::int32_t* indptr;
    const std::int32_t* lengths;
};

// Naive on purpose: the reference for whole tensors. One block per query and head; its warps take
// turns at tokens, each lane a few elements of a row.
template <class T, class Cache>
__global__ void mla_plain_kernel(const __grid_constant__ PlainArguments a) {
    const Shape& shape = a.params.shape;
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const std::int64_t row = blockIdx.x;
    const int token_row = blockIdx.x / shape.heads;
    const int sequence = token_row / shape.q_len;
    const int visible = a.lengths[sequence] - shape.q_len + 1 + token_row % shape.q_len;
    const T* q_nope = static_cast<const T*>(a.params.q) + row * kWidth;
    const T* q_pe = q_nope + kLatent;

    float nope[kLatentPerLane], pe[kRopePerLane];
    float sums[kLatentPerLane] = {}, largest = -INFINITY, total = 0.0f;
    for (int i = 0; i < kLatentPerLane; ++i) nope[i] = device::to_float(q_nope[lane + 32 * i]);
    for (int i = 0; i < kRopePerLane; ++i) pe[i] = device::to_float(q_pe[lane + 32 * i]);
    for (int token = warp; token < visible; token += kPlainWarps) {
        const std::int64_t page = a.params.pages[a.indptr[sequence] + token / shape.page_size];
        const std::int64_t cached = page * shape.page_size + token % shape.page_size;
        const Cache* latent = static_cast<const Cache*>(a.params.cache) + cached * kWidth;
        const Cache* rope = latent + kLatent;
        float values[kLatentPerLane], score = 0.0f;
        for (int i = 0; i < kLatentPerLane; ++i) {
            values[i] = widen(latent[lane + 32 * i]);
            score += nope[i] * values[i];
        }
        for (int i = 0; i < kRopePerLane; ++i) {
            score += pe[i] * widen(rope[lane + 32 * i]);
        }
        for (int distance = 16; distance > 0; distance /= 2) {
            score += __shfl_xor_sync(0xffffffffu, score, distance);
        }
        score *= a.params.scale * a.params.cache_scale;
        const float top = fmaxf(largest, score);
        const float factor = expf(largest - top);
        const float weight = expf(score - top);
        largest = top;
        total = total * factor + weight;
        for (int i = 0; i < kLatentPerLane; ++i) sums[i] = sums[i] * factor + weight * values[i];
    }
    __shared__ float all_sums[kPlainWarps][kLatent];
    __shared__ float all_largest[kPlainWarps], all_totals[kPlainWarps];
    for (int i = 0; i < kLatentPerLane; ++i) all_sums[warp][lane + 32 * i] = sums[i];
    all_largest[warp] = largest;
    all_totals[warp] = total;
    // All warps' results are written before they are added.
    __syncthreads();
    for (int column = threadIdx.x; column < kLatent; column += blockDim.x) {
        float top = -INFINITY, sum = 0.0f, weights = 0.0f;
        for (int w = 0; w < kPlainWarps; ++w) top = fmaxf(top, all_largest[w]);
        for (int w = 0; w < kPlainWarps; ++w) {
            const float factor = all_totals[w] > 0.0f ? expf(all_largest[w] - top) : 0.0f;
            sum += factor * all_sums[w][column];
            weights += factor * all_totals[w];
        }
        static_cast<T*>(a.params.out)[row * kLatent + column] =
            device::from_float<T>(weights > 0.0f ? a.params.cache_scale * (sum / weights) : 0.0f);
    }
}

}  // namespace

void launch_plain(const MlaDecode& params, const std::int32_t* indptr, const std::int32_t* lengths,
                  cudaStream_t stream) {
    const Shape& shape = params.shape;
    choose(shape, {1, Arch::kPortable});
    device::Launch grid;
    grid.grid = dim3(static_cast<unsigned>(shape.batch * shape.rows()));
    grid.block = dim3(32 * kPlainWarps);
    const PlainArguments arguments = {params, indptr, lengths};
    device::dispatch<__half, __nv_bfloat16>(params.dtype, [&](auto element) {
        using T = decltype(element);
        if (shape.cache_bytes == 1) {
            device::launch("mla_plain", mla_plain_kernel<T, E4m3>, grid, stream, arguments);
        } else {
            device::launch("mla_plain", mla_plain_kernel<T, T>, grid, stream, arguments);
        }
    });
}

}  // namespace mla
