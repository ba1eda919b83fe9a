// Backward kernel of RMSNorm and LayerNorm.
//
// A team of threads holds a row of x and of the output's gradient in registers, reduces, and writes
// the row of x's gradient. Blocks are persistent and step over the rows. kKeepsColumns: a thread
// has the same columns in every row, so the weight's and bias's gradients are summed in registers
// and leave the block once, as partial sums; otherwise they take a separate pass (column_sums.cuh).
#pragma once

#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/grid_dependency.cuh"
#include "Kernels/norms/staged_rows.cuh"

namespace norms {

// Adds the sums of a block's teams to those of its first, as a tree: a row of partial sums for each
// team would be as long as the rows themselves.
template <int kSums, int kVectors, int kPer>
__device__ void add_teams(float (&sums)[kSums][kVectors][kPer]) {
    constexpr int kValues = kSums * kVectors * kPer;
    __shared__ float theirs[kValues][kManyRowsThreads / 2];
    float* own = &sums[0][0][0];
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        const unsigned place = threadIdx.y % half * blockDim.x + threadIdx.x;
        if (threadIdx.y >= half && threadIdx.y < 2 * half) {
#pragma unroll
            for (int value = 0; value < kValues; ++value) theirs[value][place] = own[value];
        }
        // The upper half's sums are written before the lower half reads them.
        __syncthreads();
        if (threadIdx.y < half) {
#pragma unroll
            for (int value = 0; value < kValues; ++value) own[value] += theirs[value][place];
        }
        // They are read before the next ones are written.
        __syncthreads();
    }
}

template <class Given, bool kCentred>
__global__ void __launch_bounds__(max_threads(Given::kVectors, RowUse::kAccumulate))
    norm_backward_kernel(const __grid_constant__ Cut<NormBackward> params) {
    using V = std::conditional_t<Given::kKeepsColumns, Given, EdgesApart<Given>>;
    using T = typename V::T;
    // This block's share of all rows.
    Geometry geometry = params.geometry;
    const int row_columns = geometry.columns;
    int begin = 0;
    if constexpr (V::kShared) {
        const int share = share_of(row_columns, geometry.cluster_blocks, V::kPer);
        begin = static_cast<int>(device::ptx::cluster_rank()) * share;
        geometry.columns = max(0, min(share, row_columns - begin));
    }
    const auto from = [begin](const void* tensor) { return static_cast<const T*>(tensor) + begin; };
    constexpr int kSums = kCentred ? 2 : 1;
    constexpr RowUse kUse = kCentred ? RowUse::kAccumulateBoth : RowUse::kAccumulate;
    constexpr bool kShares = V::kStaged && shares_sums(V::kVectors, kUse);
    constexpr int kOwn = kShares ? 1 : kSums;
    // Whether the gradient times the weight stays in registers until the row's sums are known;
    // otherwise it is computed again from packed elements, which take half of them.
    constexpr bool kKeepsScaled = V::kStaged && V::kAligned && kOwn * V::kVectors <= 4;
    // Whether the weight stays in registers for all rows, if it is as narrow as they are: loaded
    // where it is used, each packet would make each of a row's passes wait for the cache.
    constexpr bool kKeepsWeight = !V::kStaged && V::kAligned && kOwn * V::kVectors <= 4;

    __shared__ TeamStorage storage;
    typename V::Team team(storage, geometry.cluster_blocks, /*repeats=*/true);
    const float per_column = geometry.per_column;

    // Sums over this thread's rows, for its columns: of the weight, then of the bias.
    float sums[kOwn][V::kVectors][V::kPer] = {};
    uint4 x_packets[V::kVectors];
    uint4 gradient_packets[V::kVectors];
    float kept[kKeepsScaled ? V::kVectors : 1][V::kPer];
    uint4 weight_packets[kKeepsWeight ? V::kVectors : 1];

    RowWalk<V> walk(geometry);
    // Everything that the first row waits for is requested before anything is waited for: the rows,
    // their statistics, and only then the weight, whose copy waits for itself.
    RowSource<V, 2> source(geometry, {from(params.x), from(params.out_gradient)}, walk,
                           row_columns);
    // Loaded a row ahead, so that no row waits for them.
    const auto statistic_of = [&](const float* statistic, std::int64_t row) {
        return row < walk.rows ? statistic[row] : 0.0f;
    };
    float next_rstd = statistic_of(params.rstd, walk.row);
    float next_mean = kCentred ? statistic_of(params.mean, walk.row) : 0.0f;
    const bool wide = params.wide_weight;
    const void* weights = columns_for<V, 2>(
        static_cast<const char*>(params.weight) +
            static_cast<std::ptrdiff_t>(begin) * (wide ? sizeof(float) : sizeof(T)),
        wide, geometry);
    const typename V::Slice columns(team, nullptr, geometry.columns, true);
    const bool narrow = sizeof(T) == sizeof(float) || !wide;
    if constexpr (kKeepsWeight) {
        if (narrow) columns.load(static_cast<const T*>(weights), 0, weight_packets);
    }
    const auto weight_of = [&](const typename V::Slice& slice, int chunk, int vector,
                               typename V::Slice::Values& values) {
        if constexpr (kKeepsWeight) {
            if (narrow) return device::unpack<T>(weight_packets[vector], values);
        }
        column_values<V>(slice, weights, wide, chunk, vector, geometry, values);
    };
    SharedSums<V, kShares> bias_sums(team, geometry);
    // The ring's barriers and the weight are visible to all.
    if constexpr (V::kStaged) __syncthreads();
    for (; walk.more(); walk.next()) {
        const typename V::Slice slice(team, source.row(0, walk), geometry.columns, walk.active());
        const float rstd = next_rstd;
        const float mean = next_mean;

        // With scaled = rstd * gradient * weight, first: sum of scaled * (x - mean); second: sum of
        // scaled. Outside the row the gradient is 0, and so is everything added here.
        device::TwoSums row_sums = device::TwoSums::neutral();
        source.wait();
        for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, x_packets);
            source.load(1, walk, slice, chunk, gradient_packets);
            if (chunk == 0) {
                next_rstd = statistic_of(params.rstd, walk.row + walk.step);
                if (kCentred) next_mean = statistic_of(params.mean, walk.row + walk.step);
            }
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                float values[V::kPer];
                float gradient[V::kPer];
                float weight[V::kPer] = {};
                device::unpack<T>(x_packets[vector], values);
                device::unpack<T>(gradient_packets[vector], gradient);
                weight_of(slice, chunk, vector, weight);
#pragma unroll
                for (int element = 0; element < V::kPer; ++element) {
                    const float centred = values[element] - mean;
                    const float own = gradient[element] * rstd;
                    const float scaled = own * weight[element];
                    if constexpr (kKeepsScaled) kept[vector][element] = scaled;
                    row_sums.first = fmaf(scaled, centred, row_sums.first);
                    if constexpr (kCentred) row_sums.second += scaled;
                    if constexpr (V::kKeepsColumns) {
                        float& sum = sums[0][vector][element];
                        sum = fmaf(own, centred, sum);
                        if constexpr (kOwn == 2) sums[1][vector][element] += gradient[element];
                    }
                }
                bias_sums.add(vector, gradient);
            }
        }
        device::stay_packed(x_packets);
        if constexpr (!kKeepsScaled) device::stay_packed(gradient_packets);
        float projection;
        float average = 0.0f;
        if constexpr (kCentred) {
            const device::TwoSums total = team.reduce(row_sums);
            projection = total.first * per_column;
            average = total.second * per_column;
        } else {
            projection = team.reduce(device::Sum{row_sums.first}).value * per_column;
        }

        source.next();
        const float factor = rstd * rstd * projection;

        T* x_gradient = static_cast<T*>(params.x_gradient) + walk.row * row_columns + begin;
        for (int chunk = walk.last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != walk.last_chunk) {
                source.load(0, walk, slice, chunk, x_packets);
                source.load(1, walk, slice, chunk, gradient_packets);
            }
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                float values[V::kPer];
                float scaled[V::kPer];
                device::unpack<T>(x_packets[vector], values);
                if constexpr (kKeepsScaled) {
                    memcpy(scaled, kept[vector], sizeof(scaled));
                } else {
                    float weight[V::kPer] = {};
                    device::unpack<T>(gradient_packets[vector], scaled);
                    weight_of(slice, chunk, vector, weight);
#pragma unroll
                    for (int element = 0; element < V::kPer; ++element) {
                        scaled[element] *= rstd * weight[element];
                    }
                }
#pragma unroll
                for (int element = 0; element < V::kPer; ++element) {
                    const float centred = values[element] - mean;
                    values[element] = fmaf(-centred, factor, scaled[element] - average);
                }
                slice.store(x_gradient, chunk, vector, values);
            }
        }
    }

    if constexpr (V::kKeepsColumns) {
        if constexpr (!V::kStaged) {
            if (blockDim.y > 1) add_teams(sums);
        }
        const std::int64_t rows = geometry.clusters(gridDim.x);
        const std::int64_t number = geometry.clusters(blockIdx.x);
#pragma unroll
        for (int which = 0; which < kSums; ++which) {
            float* partials =
                params.partials + (which * rows + number) * padded(row_columns) + begin;
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                const int first = columns.first(0, vector);
                if (!columns.holds(first) || threadIdx.y > 0) continue;
                float total[V::kPer];
                if (which < kOwn) {
                    memcpy(total, sums[which % kOwn][vector], sizeof(total));
                } else {
                    bias_sums.get(vector, total);
                }
#pragma unroll
                for (int quad = 0; quad < V::kPer; quad += 4) {
                    const float* four = total + quad;
                    *reinterpret_cast<float4*>(partials + first + quad) =
                        make_float4(four[0], four[1], four[2], four[3]);
                }
            }
        }
    }
    // The final sum may be scheduled while the last blocks drain; it waits for their stores itself.
    // Any earlier, it would take time from rows that are few.
    device::ptx::allow_next_grid();
}

// Instantiated for each norm in a separate file, so that they compile in parallel.
template <bool kCentred>
device::Enqueue prepare_backward_rows(const NormBackward& params, const Config& config) {
    return prepare_rows<kCentred ? RowUse::kAccumulateBoth : RowUse::kAccumulate>(
        "norm_backward", params, config,
        [](auto variant) { return norm_backward_kernel<decltype(variant), kCentred>; });
}

}  // namespace norms
