// A kernel without host code for an operation of one's own, in bf16; l2norm_own has the operation.
//
//     out[row, i] = x[row, i] / sqrt(sum(x[row]^2) + epsilon)
//
//     nvcc -O3 -arch=compute_80 -ptx -o l2norm.ptx l2norm.cu
#include <cuda_bf16.h>

constexpr int kThreads = 256;

// One block per row. The name is C's, so that kernel.json can say it.
extern "C" __global__ void l2norm(const __nv_bfloat16* x, __nv_bfloat16* out, long columns,
                                  float epsilon) {
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
    float scale = rsqrtf(sum + epsilon);
    for (long i = threadIdx.x; i < columns; i += kThreads) {
        out[i] = __float2bfloat16(__bfloat162float(x[i]) * scale);
    }
}
