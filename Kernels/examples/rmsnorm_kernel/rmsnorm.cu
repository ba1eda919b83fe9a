// RMSNorm as a kernel without host code, to start from, in bf16. kernel.json says how to launch it.
//
//     out[row, i] = x[row, i] / sqrt(mean(x[row]^2) + epsilon) * weight[i]
//
//     nvcc -O3 -arch=compute_80 -ptx -o rmsnorm.ptx rmsnorm.cu
#include <cuda_bf16.h>

constexpr int kThreads = 256;

// One block per row. The name is C's, so that kernel.json can say it.
extern "C" __global__ void rmsnorm(const __nv_bfloat16* x, const __nv_bfloat16* weight,
                                   __nv_bfloat16* out, long columns, float epsilon) {
    __shared__ float sums[kThreads / 32];
    x += blockIdx.x * columns;
    out += blockIdx.x * columns;
    float sum = 0;
    for (long i = threadIdx.x; i < columns; i += kThreads) {
        float value = __bfloat162float(x[i]);
        sum += value * value;
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (float part : sums) sum += part;
    float scale = rsqrtf(sum / static_cast<float>(columns) + epsilon);
    for (long i = threadIdx.x; i < columns; i += kThreads) {
        out[i] = __float2bfloat16(__bfloat162float(x[i]) * scale * __bfloat162float(weight[i]));
    }
}
