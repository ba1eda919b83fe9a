// RMSNorm forward kernel.
//
// A team of threads (part of a warp, a block, or a cluster) holds a row in registers: it is read
// from memory once, reduced, scaled and written. All packets of a thread are loaded before the
// first is used, and the weight's loads are issued before the reduction if registers allow.
#include "Kernels/norms/parked_row.cuh"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

template <class V>
__device__ __forceinline__ void rmsnorm_forward_rows(const Cut<RmsNormForward>& params) {
    const Geometry& geometry = params.geometry;
    using T = typename V::T;

    __shared__ TeamStorage storage;
    typename V::Team team(storage, geometry.cluster_blocks);

    RowWalk<V> walk(geometry);
    RowSource<V, 1> source(geometry, {params.x}, walk);
    Columns<V, !V::kChunked && !V::kParked> weight(params.weight, params.wide_weight);
    uint4 packets[V::kVectors];
    for (; walk.more(); walk.next()) {
        const typename V::Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

        float squares[kChains] = {};
        source.wait();
        for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets);
            weight.fetch(slice);
            source.take(slice, packets);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                float values[V::kPer];
                device::unpack<T>(packets[vector], values);
                add_squares(values, squares);
            }
        }
        if (!V::kParked) device::stay_packed(packets);
        const float mean = team.reduce(sum_of(squares)).value * geometry.per_column;
        source.next();
        const float rstd = rsqrtf(mean + params.epsilon);
        if (params.rstd != nullptr && team.leads() && walk.active()) {
            params.rstd[walk.row] = rstd;
        }

        T* out = row_at<V>(static_cast<T*>(params.out), walk.row, geometry.columns);
        for (int chunk = walk.last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != walk.last_chunk) source.load(0, walk, slice, chunk, packets);
            source.take(slice, packets);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                weight.store_scaled(slice, chunk, vector, packets[vector], rstd, out);
            }
        }
    }
}

template <class V>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V>)
    rmsnorm_forward_kernel(const __grid_constant__ Cut<RmsNormForward> params) {
    rmsnorm_forward_rows<V>(params);
}

// The same for higher occupancy.
template <class V>
__global__ void __maxnreg__(48)
    rmsnorm_forward_lean_kernel(const __grid_constant__ Cut<RmsNormForward> params) {
    rmsnorm_forward_rows<V>(params);
}

// Naive on purpose: the reference for whole tensors.
template <class T>
__global__ void rmsnorm_forward_plain_kernel(const __grid_constant__ RmsNormForward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(params.x) + row * columns;
        T* out = static_cast<T*>(params.out) + row * columns;
        float squares = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float value = device::to_float(x[column]);
            squares += value * value;
        }
        const float rstd = 1.0f / sqrtf(plain_sum(squares) / columns + params.epsilon);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float weight = plain_column<T>(params.weight, params.wide_weight, column);
            out[column] = device::from_float<T>(device::to_float(x[column]) * rstd * weight);
        }
        if (params.rstd != nullptr && threadIdx.x == 0) params.rstd[row] = rstd;
    }
}

}  // namespace

device::Enqueue prepare(const RmsNormForward& params) {
    return prepare_rows<RowUse::kOneRow>(
        "rmsnorm_forward", params,
        {{"x", params.x}, {"weight", params.weight}, {"out", params.out}}, [](auto variant) {
            using V = decltype(variant);
            if constexpr (V::kLean) {
                return rmsnorm_forward_lean_kernel<V>;
            } else {
                return rmsnorm_forward_kernel<V>;
            }
        });
}

device::Enqueue prepare_plain(const RmsNormForward& params) {
    return prepare_plain_rows("rmsnorm_forward_plain", params, [](auto element) {
        return rmsnorm_forward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
