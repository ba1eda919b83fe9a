// Backward kernel of RMSNorm and LayerNorm for few rows: everything in one launch.
//
// Some blocks have a row each and write the gradient of x. Others have a few columns each and sum
// the gradients of weight and bias over all rows, for which the saved statistics are enough. Both
// read the inputs: with few rows that takes less time than a second kernel, which would have to
// wait for the first.
#pragma once

#include "Kernels/norms/rows.cuh"

namespace norms {

template <class V>
__device__ void weights_of(const typename V::Slice& slice, const NormBackward& params, int vector,
                           typename V::Slice::Values& values) {
    using T = typename V::T;
    if constexpr (!V::kAligned) {
        // A load per element would take longer.
        if (sizeof(T) == sizeof(float) || !params.wide_weight) {
            const T* weight = static_cast<const T*>(params.weight);
            return device::unpack<T>(slice.shared_packet(weight, 0, vector), values);
        }
    }
    slice.shared_values(params.weight, params.wide_weight, 0, vector, values);
}

template <class V, bool kCentred>
__device__ void row_gradient(const Cut<NormBackward>& params, std::int64_t row) {
    using T = typename V::T;
    __shared__ TeamStorage storage;
    typename V::Team team(storage, /*cluster_blocks=*/1);
    const int columns = params.geometry.columns;
    const std::int64_t start = row * columns;
    const T* x = static_cast<const T*>(params.x) + start;
    const typename V::Slice slice(team, x, columns, true);
    uint4 x_packets[V::kVectors];
    uint4 gradient_packets[V::kVectors];
    slice.load(x, 0, x_packets);
    slice.load(static_cast<const T*>(params.out_gradient) + start, 0, gradient_packets);
    float weight[V::kVectors][V::kPer] = {};
#pragma unroll
    for (int vector = 0; vector < V::kVectors; ++vector) {
        weights_of<V>(slice, params, vector, weight[vector]);
    }
    const float rstd = params.rstd[row];
    const float mean = kCentred ? params.mean[row] : 0.0f;

    // Sums of scaled * normal, and of scaled; 0 outside the row, where the gradient is.
    device::TwoSums sums = device::TwoSums::neutral();
#pragma unroll
    for (int vector = 0; vector < V::kVectors; ++vector) {
        float normal[V::kPer];
        float gradient[V::kPer];
        device::unpack<T>(x_packets[vector], normal);
        device::unpack<T>(gradient_packets[vector], gradient);
#pragma unroll
        for (int element = 0; element < V::kPer; ++element) {
            const float scaled = gradient[element] * weight[vector][element];
            sums.first = fmaf(scaled, (normal[element] - mean) * rstd, sums.first);
            if constexpr (kCentred) sums.second += scaled;
        }
    }
    sums = team.reduce(sums);
    const float projection = sums.first * params.geometry.per_column;
    const float average = kCentred ? sums.second * params.geometry.per_column : 0.0f;

    T* x_gradient = static_cast<T*>(params.x_gradient) + start;
#pragma unroll
    for (int vector = 0; vector < V::kVectors; ++vector) {
        float normal[V::kPer];
        float gradient[V::kPer];
        device::unpack<T>(x_packets[vector], normal);
        device::unpack<T>(gradient_packets[vector], gradient);
#pragma unroll
        for (int element = 0; element < V::kPer; ++element) {
            const float centred = (normal[element] - mean) * rstd;
            const float scaled = gradient[element] * weight[vector][element] - average;
            gradient[element] = rstd * fmaf(-centred, projection, scaled);
        }
        slice.store(x_gradient, 0, vector, gradient);
    }
}

// An element of a matrix, and how many follow in its row and in the matrix as a whole.
struct Place {
    std::int64_t index;
    int held;
    std::int64_t elements;
};

// The packet that begins there; zeros beyond the row.
template <class V>
__device__ uint4 packet_at(const typename V::T* matrix, const Place& place) {
    using T = typename V::T;
    if constexpr (V::kAligned) {
        return device::ptx::load_16(matrix + place.index);
    } else {
        using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
        const int skipped = static_cast<int>(place.index % V::kPer);
        const auto whole = [&](std::int64_t begin) {
            if (begin + V::kPer <= place.elements) return device::ptx::load_16(matrix + begin);
            // The end of the matrix, after which there may be no memory.
            const auto* bits = reinterpret_cast<const Bits*>(matrix);
            uint32_t words[4] = {};
#pragma unroll
            for (int i = 0; i < V::kPer; ++i) {
                if (begin + i >= place.elements) continue;
                constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
                words[i / kPerWord] |= uint32_t{bits[begin + i]} << (i % kPerWord * 16);
            }
            return uint4{words[0], words[1], words[2], words[3]};
        };
        const std::int64_t begin = place.index - skipped;
        const uint4 packet = cut_packet<T>(whole(begin), whole(begin + V::kPer), skipped);
        return place.held < V::kPer ? first_elements<T>(packet, place.held) : packet;
    }
}

// The sums of kSummedPackets packets of columns. A thread adds up every so many rows of its packet;
// then a warp's threads, and last the warps, in a fixed order.
template <class V, bool kCentred>
__device__ void column_gradients(const Cut<NormBackward>& params, int block) {
    using T = typename V::T;
    constexpr int kSums = kCentred ? 2 : 1;
    constexpr int kColumns = kSummedPackets * V::kPer;
    __shared__ __align__(16) float partials[device::kMaxWarps][kSums][kColumns];

    const int columns = params.geometry.columns;
    const int packet = threadIdx.x % kSummedPackets;
    const int column = (block * kSummedPackets + packet) * V::kPer;
    const int step = blockDim.x / kSummedPackets;
    float sums[kSums][V::kPer] = {};
    if (column < columns) {
        const T* x = static_cast<const T*>(params.x);
        const T* out_gradient = static_cast<const T*>(params.out_gradient);
        const int rows = static_cast<int>(params.geometry.rows);
#pragma unroll 4
        for (int row = threadIdx.x / kSummedPackets; row < rows; row += step) {
            const Place place = {std::int64_t{row} * columns + column, columns - column,
                                 std::int64_t{rows} * columns};
            const uint4 loaded[2] = {packet_at<V>(x, place), packet_at<V>(out_gradient, place)};
            const float rstd = params.rstd[row];
            const float mean = kCentred ? params.mean[row] : 0.0f;
            float normal[V::kPer];
            float gradient[V::kPer];
            device::unpack<T>(loaded[0], normal);
            device::unpack<T>(loaded[1], gradient);
#pragma unroll
            for (int element = 0; element < V::kPer; ++element) {
                sums[0][element] =
                    fmaf(gradient[element], (normal[element] - mean) * rstd, sums[0][element]);
                if constexpr (kCentred) sums[1][element] += gradient[element];
            }
        }
    }
#pragma unroll
    for (int which = 0; which < kSums; ++which) {
#pragma unroll
        for (float& sum : sums[which]) {
#pragma unroll
            for (int distance = kSummedPackets; distance < 32; distance *= 2) {
                sum += __shfl_xor_sync(0xffffffffu, sum, distance);
            }
        }
        if (threadIdx.x % 32 < kSummedPackets) {
            float* to = &partials[threadIdx.x / 32][which][packet * V::kPer];
#pragma unroll
            for (int quad = 0; quad < V::kPer; quad += 4) {
                const float* four = sums[which] + quad;
                *reinterpret_cast<float4*>(to + quad) =
                    make_float4(four[0], four[1], four[2], four[3]);
            }
        }
    }
    // All warps' sums are written before they are read across.
    __syncthreads();
    const int warps = blockDim.x / 32;
    for (int place = threadIdx.x; place < kSums * kColumns; place += blockDim.x) {
        const int which = place / kColumns;
        const int at = block * kColumns + place % kColumns;
        if (at >= columns) continue;
        float total = 0.0f;
#pragma unroll 8
        for (int warp = 0; warp < warps; ++warp) {
            total += partials[warp][which][place % kColumns];
        }
        void* out = params.column_gradients[which];
        if (params.wide_weight) {
            static_cast<float*>(out)[at] = total;
        } else {
            static_cast<T*>(out)[at] = device::from_float<T>(total);
        }
    }
}

template <class V, bool kCentred>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V>)
    few_rows_backward_kernel(const __grid_constant__ Cut<NormBackward> params) {
    const int rows = static_cast<int>(params.geometry.rows);
    const int summing = static_cast<int>(gridDim.x) - rows;
    // Up to here all blocks run at once, and rows, with a reduction in the middle, take longer.
    // Beyond, sums do, which must not be left for the end.
    const int first_row = rows <= kResidentRows ? 0 : summing;
    const int row = static_cast<int>(blockIdx.x) - first_row;
    if (row >= 0 && row < rows) {
        row_gradient<V, kCentred>(params, row);
    } else {
        column_gradients<V, kCentred>(params, first_row == 0 ? row - rows : row + summing);
    }
}

// Instantiated like prepare_backward_rows.
template <bool kCentred>
device::Enqueue prepare_few_rows(const NormBackward& params, const Config& config) {
    return prepare_rows<RowUse::kFewRows>("few_rows_backward", params, config, [](auto variant) {
        return few_rows_backward_kernel<decltype(variant), kCentred>;
    });
}

}  // namespace norms
