// Backward kernel of RMSNorm and LayerNorm.
//
// A team of threads holds a row of x and of the output's gradient in registers, reduces, and writes
// the row of x's gradient. Blocks stay and step over the rows. kAligned: a thread keeps its columns
// from row to row, so the weight's and bias's gradients are summed in registers and leave the block
// once, as partial sums; otherwise they take a pass of their own (column_sums.cuh).
#pragma once

#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/norms/kernel.cuh"

namespace norms {

struct NormBackwardArguments {
    const void* x;
    const void* weight;
    const void* out_gradient;
    const float* mean;
    const float* rstd;
    void* x_gradient;
    float* partials;  // [1 or 2][teams][columns]
    Geometry geometry;
    bool wide_weight;
};

template <class T, int kVectors, bool kAligned, bool kCentred>
__global__ void __launch_bounds__(max_threads(kVectors, RowUse::kAccumulate))
    norm_backward_kernel(const __grid_constant__ NormBackwardArguments arguments) {
    using Slice = device::RowSlice<T, kVectors, kAligned>;
    constexpr int kPer = Slice::kPer;
    constexpr int kSums = kCentred ? 2 : 1;

    __shared__ device::TeamStorage storage;
    const Geometry& geometry = arguments.geometry;
    device::RowTeam team(storage, geometry.cluster_blocks);
    const int last_chunk = kChunked<kVectors> ? geometry.chunks - 1 : 0;
    const float per_column = 1.0f / static_cast<float>(geometry.columns);

    // Sums over this thread's rows, for its columns: of the weight, then of the bias.
    float sums[kSums][kVectors][kPer] = {};
    uint4 x_packets[kVectors];
    uint4 gradient_packets[kVectors];

    for (RowWalk walk(geometry); walk.more(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        const T* x = static_cast<const T*>(arguments.x) + offset;
        const T* out_gradient = static_cast<const T*>(arguments.out_gradient) + offset;
        const Slice slice(team, x, geometry.columns, walk.active());
        const float rstd = walk.active() ? arguments.rstd[walk.row] : 0.0f;
        const float mean = kCentred && walk.active() ? arguments.mean[walk.row] : 0.0f;

        // First: sum of scaled * normal; second: sum of scaled. Outside the row the gradient is 0,
        // and so is all that is added here.
        device::TwoSums row_sums = device::TwoSums::neutral();
        for (int chunk = 0; chunk <= last_chunk; ++chunk) {
            slice.load(x, chunk, x_packets);
            slice.load(out_gradient, chunk, gradient_packets);
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float normal[kPer];
                float gradient[kPer];
                float weight[kPer] = {};
                device::unpack<T>(x_packets[vector], normal);
                device::unpack<T>(gradient_packets[vector], gradient);
                slice.shared_values(arguments.weight, arguments.wide_weight, chunk, vector, weight);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    const float centred = (normal[element] - mean) * rstd;
                    const float scaled = gradient[element] * weight[element];
                    row_sums.first = fmaf(scaled, centred, row_sums.first);
                    if constexpr (kCentred) row_sums.second += scaled;
                    if constexpr (kAligned) {
                        float& sum = sums[0][vector][element];
                        sum = fmaf(gradient[element], centred, sum);
                        if constexpr (kCentred) sums[1][vector][element] += gradient[element];
                    }
                }
            }
        }
        device::stay_packed(x_packets);
        device::stay_packed(gradient_packets);
        float projection;
        float average = 0.0f;
        if constexpr (kCentred) {
            const device::TwoSums total = team.reduce(row_sums);
            projection = total.first * per_column;
            average = total.second * per_column;
        } else {
            projection = team.reduce(device::Sum{row_sums.first}).value * per_column;
        }

        T* x_gradient = static_cast<T*>(arguments.x_gradient) + offset;
        for (int chunk = last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != last_chunk) {
                slice.load(x, chunk, x_packets);
                slice.load(out_gradient, chunk, gradient_packets);
            }
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                float normal[kPer];
                float gradient[kPer];
                float weight[kPer] = {};
                device::unpack<T>(x_packets[vector], normal);
                device::unpack<T>(gradient_packets[vector], gradient);
                slice.shared_values(arguments.weight, arguments.wide_weight, chunk, vector, weight);
#pragma unroll
                for (int element = 0; element < kPer; ++element) {
                    const float centred = (normal[element] - mean) * rstd;
                    const float scaled = gradient[element] * weight[element] - average;
                    gradient[element] = rstd * fmaf(-centred, projection, scaled);
                }
                slice.store(x_gradient, chunk, vector, gradient);
            }
        }
    }

    if constexpr (kAligned) {
        const std::int64_t teams =
            static_cast<std::int64_t>(gridDim.x / geometry.cluster_blocks) * blockDim.y;
        const std::int64_t number =
            static_cast<std::int64_t>(blockIdx.x / geometry.cluster_blocks) * blockDim.y +
            threadIdx.y;
        const Slice columns(team, nullptr, geometry.columns, true);
#pragma unroll
        for (int which = 0; which < kSums; ++which) {
            float* partials = arguments.partials + (which * teams + number) * geometry.columns;
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                const int first = columns.first(0, vector);
                if (!columns.holds(first)) continue;
#pragma unroll
                for (int quad = 0; quad < kPer; quad += 4) {
                    const float* four = sums[which][vector] + quad;
                    *reinterpret_cast<float4*>(partials + first + quad) =
                        make_float4(four[0], four[1], four[2], four[3]);
                }
            }
        }
    }
    // The final sum may be scheduled while the last blocks drain; it waits for their stores itself.
    device::ptx::allow_next_grid();
}

}  // namespace norms
