// Column sums of a short, wide fp32 matrix that has just been written and is therefore in L2.
//
// A block owns 32 columns: 8 adjacent lanes load 4 columns each with one 16-byte load, 64 such
// groups take turns over the rows, and shared memory reduces the groups. 128 blocks of 512 threads
// for 4096 columns fill the device once; torch's own sum over these partials does the same work.
// Of columns that do not come in fours a lane has one.
#include <cuda_bf16.h>

#include <stdexcept>
#include <string>

#include "Kernels/baselines/column_sums/column_sums.h"
#include "Kernels/device/launch.h"

namespace column_sums {
namespace {

constexpr int kFour = 4;
constexpr int kLanes = 8;
constexpr int kRowGroups = 64;

__device__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__device__ void store(float* out, float value) { *out = value; }

__device__ void store(__nv_bfloat16* out, float value) { *out = __float2bfloat16_rn(value); }

__device__ void store(float* out, float4 value) { *reinterpret_cast<float4*>(out) = value; }

__device__ void store(__nv_bfloat16* out, float4 value) {
    const __nv_bfloat162 pairs[2] = {__floats2bfloat162_rn(value.x, value.y),
                                     __floats2bfloat162_rn(value.z, value.w)};
    *reinterpret_cast<uint2*>(out) = *reinterpret_cast<const uint2*>(pairs);
}

template <class Out, class Vector>
__global__ void __launch_bounds__(kLanes* kRowGroups) column_sums_kernel(const ColumnSums params) {
    constexpr int kWidth = sizeof(Vector) / sizeof(float);
    __shared__ Vector groups[kRowGroups][kLanes];
    const ColumnSum sum = params.sums[blockIdx.y];
    const int lane = static_cast<int>(threadIdx.x);
    const int group = static_cast<int>(threadIdx.y);
    const int column = (static_cast<int>(blockIdx.x) * kLanes + lane) * kWidth;
    const bool inside = column < params.columns;

    Vector total = {};
    if (inside) {
        const Vector* partials = reinterpret_cast<const Vector*>(sum.partials + column);
        const int stride = params.columns / kWidth;
#pragma unroll 4
        for (int row = group; row < params.rows; row += kRowGroups) {
            total = total + __ldcg(partials + static_cast<long long>(row) * stride);
        }
    }
    groups[group][lane] = total;
    // Each halving reads what the previous one wrote.
    for (int half = kRowGroups / 2; half > 0; half /= 2) {
        __syncthreads();
        if (group < half) {
            groups[group][lane] = groups[group][lane] + groups[group + half][lane];
        }
    }
    if (group == 0 && inside) store(static_cast<Out*>(sum.out) + column, groups[0][lane]);
}

template <class Vector>
void launch_with(const ColumnSums& params, cudaStream_t stream) {
    constexpr int kBlockColumns = kLanes * sizeof(Vector) / sizeof(float);
    device::Launch shape;
    shape.grid = dim3((params.columns + kBlockColumns - 1) / kBlockColumns, params.sum_count);
    shape.block = dim3(kLanes, kRowGroups);
    if (params.out_type == WeightType::kBf16) {
        device::launch("column_sums", column_sums_kernel<__nv_bfloat16, Vector>, shape, stream,
                       params);
    } else {
        device::launch("column_sums", column_sums_kernel<float, Vector>, shape, stream, params);
    }
}

}  // namespace

void launch(const ColumnSums& params, cudaStream_t stream) {
    if (params.sum_count < 1 || params.sum_count > 2) {
        throw std::invalid_argument("column sums: " + std::to_string(params.sum_count) +
                                    " matrices; expected 1 or 2");
    }
    if (params.columns % kFour == 0) return launch_with<float4>(params, stream);
    launch_with<float>(params, stream);
}

}  // namespace column_sums
