// out[row, i] = x[row, i] / sqrt(sum(x[row]^2) + epsilon) on CUDA, to start from, in bf16.
//
//     nvcc -O3 -arch=native -shared -Xcompiler -fPIC -o libl2norm.so l2norm.cu
#include <cuda_bf16.h>

#include "contender.h"

namespace {

constexpr int kThreads = 256;

// One block per row.
__global__ void Kernel(const __nv_bfloat16* x, __nv_bfloat16* out, long columns, float epsilon) {
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

struct Work {
    const __nv_bfloat16* x;
    __nv_bfloat16* out;
    long rows, columns;
    float epsilon;
};

// nullptr if it can do it, otherwise why not.
const char* Supports(const contender_problem* problem) {
    if (problem->device != CONTENDER_CUDA) return "runs on CUDA only";
    const contender_tensor* x = contender_find(problem, "x");
    return x && x->dtype == CONTENDER_BF16 ? nullptr : "bf16 only";
}

// Everything that need not be timed.
void* Bind(const contender_problem* problem, char*, size_t) {
    const contender_tensor* x = contender_find(problem, "x");
    return new Work{static_cast<const __nv_bfloat16*>(x->address),
                    static_cast<__nv_bfloat16*>(contender_find(problem, "out")->address),
                    x->shape[0], x->shape[1],
                    static_cast<float>(contender_number(problem, "epsilon", 0))};
}

// The work: this is timed.
int32_t Enqueue(void* handle, void* stream) {
    const Work& work = *static_cast<const Work*>(handle);
    Kernel<<<static_cast<unsigned>(work.rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
        work.x, work.out, work.columns, work.epsilon);
    return static_cast<int32_t>(cudaGetLastError());
}

void Destroy(void* handle) { delete static_cast<Work*>(handle); }

const char* const kOps[] = {"l2norm", nullptr};

}  // namespace

const contender_description* contender_library() {
    static const contender_description library = {
        CONTENDER_ABI_VERSION,
        sizeof(contender_description),
        "l2norm in CUDA C++",
        "1",
        kOps,
        Supports,
        Bind,
        Enqueue,
        nullptr,
        Destroy,
    };
    return &library;
}
