// Obvious on purpose: the reference that whole tensors are compared with.
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/launch.h"
#include "Kernels/nsa/check.h"

namespace nsa {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxDim = 256;

// One block a query head; a thread has up to two elements of the output.
template <class T>
__global__ void selected_plain_kernel(const __grid_constant__ Selected params) {
    __shared__ float partial[kThreads];
    const int dim = params.dim;
    const std::int64_t token = blockIdx.x / params.heads;
    const int head = static_cast<int>(blockIdx.x % params.heads);
    const int group = head / (params.heads / params.groups);
    const int position = static_cast<int>(token % params.sequence);
    const T* query = static_cast<const T*>(params.queries) + (token * params.heads + head) * dim;
    const std::int32_t* blocks = params.blocks + (token * params.groups + group) * params.selected;
    float largest = -INFINITY;
    float total = 0.0f;
    float out[kMaxDim / kThreads] = {};
    for (int place = 0; place < params.selected; ++place) {
        if (blocks[place] < 0) continue;
        for (int key = blocks[place] * params.block;
             key < (blocks[place] + 1) * params.block && key <= position; ++key) {
            const std::int64_t row =
                ((token - position + key) * params.groups + group) * static_cast<std::int64_t>(dim);
            float product = 0.0f;
            for (int column = threadIdx.x; column < dim; column += kThreads) {
                product += device::to_float(query[column]) *
                           device::to_float(static_cast<const T*>(params.keys)[row + column]);
            }
            partial[threadIdx.x] = product;
            // Orders all threads' parts before the tree reads them; below, each level.
            __syncthreads();
            for (int half = kThreads / 2; half > 0; half /= 2) {
                if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
                __syncthreads();
            }
            const float score = params.scale * partial[0];
            // Everyone has read the score before the next key's parts overwrite it.
            __syncthreads();
            const float top = fmaxf(largest, score);
            const float shrink = expf(largest - top);
            const float weight = expf(score - top);
            const float rounded = device::to_float(device::from_float<T>(weight));
            largest = top;
            total = total * shrink + weight;
            for (int column = threadIdx.x, slot = 0; column < dim; column += kThreads, ++slot) {
                out[slot] =
                    out[slot] * shrink +
                    rounded * device::to_float(static_cast<const T*>(params.values)[row + column]);
            }
        }
    }
    T* destination = static_cast<T*>(params.out) + (token * params.heads + head) * dim;
    for (int column = threadIdx.x, slot = 0; column < dim; column += kThreads, ++slot) {
        destination[column] = device::from_float<T>(out[slot] / total);
    }
    if (threadIdx.x == 0) params.lse[token * params.heads + head] = largest + logf(total);
}

}  // namespace

void launch_plain(const Selected& params, cudaStream_t stream) {
    check(params);
    if (params.dim > kMaxDim) {
        throw std::invalid_argument("dim is " + std::to_string(params.dim) + "; up to 256");
    }
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(params.tokens * params.heads));
    shape.block = dim3(kThreads);
    device::dispatch_type(params.type, [&](auto element) {
        device::launch("nsa_plain", selected_plain_kernel<decltype(element)>, shape, stream,
                       params);
    });
}

}  // namespace nsa
