// Launch of the backward passes. A template on the norm, so that each has its own translation unit.
#pragma once

#include <algorithm>

#include "Kernels/norms/column_sums.cuh"
#include "Kernels/norms/norm_backward.cuh"
#include "Kernels/norms/norm_backward.h"

namespace norms {

// Partial sums of the pass over columns: enough blocks to fill the GPU, few enough to add up.
constexpr int kColumnPartials = 256;

inline std::int64_t rows_per_partial(std::int64_t rows) {
    return (rows + kColumnPartials - 1) / kColumnPartials;
}

inline std::int64_t partial_rows(const NormBackward& params, const Config& config) {
    if (config.aligned) return config.teams();
    const std::int64_t each = rows_per_partial(params.rows);
    return (params.rows + each - 1) / each;
}

inline RowUse use_of(const NormBackward& params) {
    return params.norm == Norm::kLayer ? RowUse::kAccumulateBoth : RowUse::kAccumulate;
}

inline int sums_of(const NormBackward& params) { return params.norm == Norm::kLayer ? 2 : 1; }

// Adds up `rows` partial sums a column; starts while the grid that makes them drains.
template <class T>
void launch_column_sums(const NormBackward& params, std::int64_t rows, cudaStream_t stream) {
    const ColumnSumsArguments arguments = {static_cast<const float*>(params.workspace),
                                           {params.weight_gradient, params.bias_gradient},
                                           rows,
                                           params.columns,
                                           params.weight_type == ElementType::kF32};
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>((params.columns + kSumColumns - 1) / kSumColumns),
                      static_cast<unsigned>(sums_of(params)));
    shape.block = dim3(kSumColumns, kSumLanes);
    shape.overlaps_previous = true;
    device::launch("column_sums", column_sums_kernel<T>, shape, stream, arguments);
}

template <class T, bool kCentred>
void launch_column_partials(const NormBackward& params, std::int64_t rows_each,
                            cudaStream_t stream) {
    const ColumnPartialsArguments arguments = {params.x,
                                               params.out_gradient,
                                               params.mean,
                                               params.rstd,
                                               static_cast<float*>(params.workspace),
                                               params.rows,
                                               params.columns,
                                               rows_each};
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>((params.columns + kColumnThreads - 1) / kColumnThreads),
                      static_cast<unsigned>((params.rows + rows_each - 1) / rows_each));
    shape.block = dim3(kColumnThreads);
    device::launch("column_partials", column_partials_kernel<T, kCentred>, shape, stream,
                   arguments);
}

template <bool kCentred>
void launch_norm_backward(const NormBackward& params, const Config& config, cudaStream_t stream) {
    const NormBackwardArguments arguments = {params.x,
                                             params.weight,
                                             params.out_gradient,
                                             params.mean,
                                             params.rstd,
                                             params.x_gradient,
                                             static_cast<float*>(params.workspace),
                                             geometry_of(params, config),
                                             params.weight_type == ElementType::kF32};
    dispatch<kCentred ? RowUse::kAccumulateBoth : RowUse::kAccumulate>(
        params.type, config, [&](auto variant) {
            using V = decltype(variant);
            using T = typename V::T;
            // First, because x_gradient may overwrite out_gradient.
            if (!V::kAligned) {
                launch_column_partials<T, kCentred>(params, rows_per_partial(params.rows), stream);
            }
            device::launch("norm_backward", norm_backward_kernel<V, kCentred>,
                           launch_shape(config, shape_of(params), use_of(params)), stream,
                           arguments);
            launch_column_sums<T>(params, partial_rows(params, config), stream);
        });
}

}  // namespace norms
