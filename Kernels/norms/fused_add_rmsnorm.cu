// Fused residual addition and RMSNorm kernel.
//
// Like rmsnorm_forward, with the sum of two rows in registers. The new residual is stored before
// the reduction, so that its traffic overlaps the wait.
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class V>
__device__ __forceinline__ void fused_add_rmsnorm_rows(const Cut<FusedAddRmsNorm>& params) {
    const Geometry& geometry = params.geometry;
    using T = typename V::T;

    __shared__ TeamStorage storage;
    typename V::Team team(storage, geometry.cluster_blocks);

    RowWalk<V> walk(geometry);
    RowSource<V, 2> source(geometry, {params.x, params.residual}, walk);
    uint4 added[V::kVectors];
    uint4 packets[V::kVectors];
    // With more vectors the second row needs the registers.
    Columns<V, !V::kChunked && V::kVectors <= 2> weight(params.weight, params.wide_weight);
    for (; walk.more(); walk.next()) {
        const std::int64_t offset = walk.row * geometry.columns;
        T* x = static_cast<T*>(params.x) + offset;
        T* residual = static_cast<T*>(params.residual) + offset;
        const typename V::Slice slice(team, x, geometry.columns, walk.active());

        float squares[kChains] = {};
        source.wait();
        for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, added);
            source.load(1, walk, slice, chunk, packets);
            weight.fetch(slice);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                float values[V::kPer];
                float others[V::kPer];
                device::unpack<T>(packets[vector], values);
                device::unpack<T>(added[vector], others);
#pragma unroll
                for (int element = 0; element < V::kPer; ++element)
                    values[element] += others[element];
                // The norm is taken of the stored value, so rounding comes first.
                packets[vector] = device::pack<T>(values);
                slice.store_packet(residual, chunk, vector, packets[vector]);
                device::unpack<T>(packets[vector], values);
                add_squares(values, squares);
            }
        }
        device::stay_packed(packets);
        const float mean = team.reduce(sum_of(squares)).value * geometry.per_column;
        source.next();
        const float rstd = rsqrtf(mean + params.epsilon);

        for (int chunk = walk.last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers; the others are reloaded from the new residual.
            if (chunk != walk.last_chunk) slice.load(residual, chunk, packets);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                weight.store_scaled(slice, chunk, vector, packets[vector], rstd, x);
            }
        }
    }
}

template <class V>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V, RowUse::kInPlace>)
    fused_add_rmsnorm_kernel(const __grid_constant__ Cut<FusedAddRmsNorm> params) {
    fused_add_rmsnorm_rows<V>(params);
}

// The same for higher occupancy.
template <class V>
__global__ void __maxnreg__(48)
    fused_add_rmsnorm_lean_kernel(const __grid_constant__ Cut<FusedAddRmsNorm> params) {
    fused_add_rmsnorm_rows<V>(params);
}

template <class T>
__global__ void fused_add_rmsnorm_plain_kernel(const __grid_constant__ FusedAddRmsNorm params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        T* x = static_cast<T*>(params.x) + row * columns;
        T* residual = static_cast<T*>(params.residual) + row * columns;
        float squares = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float sum = device::to_float(x[column]) + device::to_float(residual[column]);
            residual[column] = device::from_float<T>(sum);
            const float stored = device::to_float(residual[column]);
            squares += stored * stored;
        }
        const float rstd = 1.0f / sqrtf(plain_sum(squares) / columns + params.epsilon);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float weight = plain_column<T>(params.weight, params.wide_weight, column);
            x[column] = device::from_float<T>(device::to_float(residual[column]) * rstd * weight);
        }
    }
}

}  // namespace

device::Enqueue prepare(const FusedAddRmsNorm& params) {
    return prepare_rows<RowUse::kInPlace>(
        "fused_add_rmsnorm", params,
        {{"x", params.x}, {"residual", params.residual}, {"weight", params.weight}},
        [](auto variant) {
            using V = decltype(variant);
            if constexpr (V::kLean) {
                return fused_add_rmsnorm_lean_kernel<V>;
            } else {
                return fused_add_rmsnorm_kernel<V>;
            }
        });
}

device::Enqueue prepare_plain(const FusedAddRmsNorm& params) {
    return prepare_plain_rows("fused_add_rmsnorm_plain", params, [](auto element) {
        return fused_add_rmsnorm_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
