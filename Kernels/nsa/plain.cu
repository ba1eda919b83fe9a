// Naive on purpose: the reference for whole tensors.
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/nsa/check.h"

namespace nsa {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxDim = 256;

struct Range {
    int first;
    int end;
};

// What a query sees: up to ranges() runs of rows of its sequence, which starts at first_row.
struct SelectedKeys {
    const Selected& params;
    const std::int32_t* blocks;
    int position;
    __device__ SelectedKeys(const Selected& given, std::int64_t token, int group)
        : params(given),
          blocks(given.blocks + (token * given.groups + group) * given.selected),
          position(static_cast<int>(token % given.sequence)) {}
    __device__ int ranges() const { return params.selected; }
    __device__ std::int64_t first_row(std::int64_t token) const { return token - position; }
    __device__ Range range(int index) const {
        if (blocks[index] < 0) return {0, 0};
        const int first = blocks[index] * params.block;
        return {first, min(first + params.block, position + 1)};
    }
};

struct BandedKeys {
    const Banded& params;
    int position;
    __device__ BandedKeys(const Banded& given, std::int64_t token, int)
        : params(given), position(static_cast<int>(token % given.sequence)) {}
    __device__ int ranges() const { return 1; }
    __device__ std::int64_t first_row(std::int64_t token) const {
        if (params.reach == Reach::kWindow) return token - position;
        return token / params.sequence * ((params.sequence + params.size - 1) / params.size);
    }
    __device__ Range range(int) const {
        if (params.reach == Reach::kWindow)
            return {max(position + 1 - params.size, 0), position + 1};
        return {0, (position + 1) / params.size};
    }
};

// One block per query head; a thread has up to two elements of the output.
template <class T, class Params, class Keys>
__global__ void plain_kernel(const __grid_constant__ Params params) {
    __shared__ float partial[kThreads];
    const int dim = params.dim;
    const std::int64_t token = blockIdx.x / params.heads;
    const int head = static_cast<int>(blockIdx.x % params.heads);
    const int group = head / (params.heads / params.groups);
    const T* query = static_cast<const T*>(params.queries) + (token * params.heads + head) * dim;
    const Keys keys(params, token, group);
    float largest = -INFINITY;
    float total = 0.0f;
    float out[kMaxDim / kThreads] = {};
    for (int index = 0; index < keys.ranges(); ++index) {
        const Range range = keys.range(index);
        for (int key = range.first; key < range.end; ++key) {
            const std::int64_t row = ((keys.first_row(token) + key) * params.groups + group) *
                                     static_cast<std::int64_t>(dim);
            float product = 0.0f;
            for (int column = threadIdx.x; column < dim; column += kThreads) {
                product += device::to_float(query[column]) *
                           device::to_float(static_cast<const T*>(params.keys)[row + column]);
            }
            partial[threadIdx.x] = product;
            // All threads' parts are written before the tree reads them; below, likewise.
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
        destination[column] = device::from_float<T>(total > 0.0f ? out[slot] / total : 0.0f);
    }
    if (threadIdx.x == 0) {
        params.lse[token * params.heads + head] = total > 0.0f ? largest + logf(total) : 0.0f;
    }
}

void check_dim(const Branch& params) {
    check_branch(params);
    require(params.dim <= kMaxDim, "dim is " + std::to_string(params.dim) + "; use up to 256");
}

template <class Keys, class Params>
device::Enqueue prepare_keys(const Params& params) {
    check_plain(params);
    check_addresses(params);
    return device::dispatch_activations(params.dtype, [&](auto element) {
        return device::prepare("nsa_plain", plain_kernel<decltype(element), Params, Keys>,
                               device::blocks_of(params.tokens * params.heads, kThreads), params);
    });
}

}  // namespace

void check_plain(const Selected& params) {
    check_dim(params);
    require(params.block >= 1 && params.selected >= 1, "no block is selected");
}

void check_plain(const Banded& params) {
    check_dim(params);
    const char* what = params.reach == Reach::kWindow ? "a window" : "a block";
    require(params.size >= 1, std::string(what) + " of " + std::to_string(params.size) +
                                  " keys; at least 1 is required");
}

device::Enqueue prepare_plain(const Selected& params) { return prepare_keys<SelectedKeys>(params); }

device::Enqueue prepare_plain(const Banded& params) { return prepare_keys<BandedKeys>(params); }

}  // namespace nsa
