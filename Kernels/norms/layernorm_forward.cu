// LayerNorm forward kernel.
//
// A team of threads holds a row in registers or, if rows are many, in shared memory. Mean and
// variance come from one reduction, over the elements and their squares. A mean so large that the
// variance would be lost to cancellation is detected, and costs a second reduction, over the
// distances from the mean.
#include "Kernels/norms/parked_row.cuh"
#include "Kernels/norms/plain.cuh"

namespace norms {
namespace {

// Sums of a thread's elements of one chunk, and of their squares. Elements outside the row are 0.
template <class V>
__device__ device::TwoSums elements_of(const uint4 (&packets)[V::kVectors]) {
    float sums[2] = {};
    float squares[2] = {};
#pragma unroll
    for (int vector = 0; vector < V::kVectors; ++vector) {
        float values[V::kPer];
        device::unpack<typename V::T>(packets[vector], values);
#pragma unroll
        for (int element = 0; element < V::kPer; ++element) {
            sums[element % 2] += values[element];
            squares[element % 2] = fmaf(values[element], values[element], squares[element % 2]);
        }
    }
    return {sums[0] + sums[1], squares[0] + squares[1]};
}

// The same for the distances from `shift`.
template <class V>
__device__ device::TwoSums distances_of(const typename V::Slice& slice,
                                        uint4 (&packets)[V::kVectors], int chunk, float shift) {
    float sums[2] = {};
    float squares[2] = {};
#pragma unroll
    for (int vector = 0; vector < V::kVectors; ++vector) {
        float values[V::kPer];
        device::unpack<typename V::T>(packets[vector], values);
        const auto holds = [&](int element) {
            if constexpr (V::kWords) {
                return slice.holds(vector, element);
            } else {
                return slice.holds(slice.first(chunk, vector) + element);
            }
        };
        if (V::kAligned && !holds(0)) continue;
#pragma unroll
        for (int element = 0; element < V::kPer; ++element) {
            // Aligned packets are entirely inside or outside, which was decided above.
            const bool inside = V::kAligned || holds(element);
            const float distance = inside ? values[element] - shift : 0.0f;
            sums[element % 2] += distance;
            squares[element % 2] = fmaf(distance, distance, squares[element % 2]);
        }
    }
    return {sums[0] + sums[1], squares[0] + squares[1]};
}

template <class V>
__global__ void __launch_bounds__(kMaxThreads<V>, kMinBlocks<V, RowUse::kCentredRow>)
    layernorm_forward_kernel(const __grid_constant__ Cut<LayerNormForward> params) {
    const Geometry& geometry = params.geometry;
    using T = typename V::T;
    // With more vectors, or unpacked, there are not enough registers for both.
    constexpr bool kEarly = (V::kAligned || V::kWords) && V::kVectors <= 2;

    __shared__ TeamStorage storage;
    typename V::Team team(storage, geometry.cluster_blocks);

    // Share of the squares that must remain: a relative error of at most 10 roundings.
    constexpr float kLeft = 0.1f;
    const float per_column = geometry.per_column;
    RowWalk<V> walk(geometry);
    Columns<V, kEarly> weight(params.weight, params.wide_weight);
    Columns<V, kEarly> bias(params.bias, params.wide_weight);
    RowSource<V, 1> source(geometry, {params.x}, walk);
    uint4 packets[V::kVectors];
    for (; walk.more(); walk.next()) {
        const typename V::Slice slice(team, source.row(0, walk), geometry.columns, walk.active());

        source.wait();
        device::TwoSums sums = device::TwoSums::neutral();
        for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
            source.load(0, walk, slice, chunk, packets);
            weight.fetch(slice);
            bias.fetch(slice);
            source.take(slice, packets);
            sums = sums + elements_of<V>(packets);
        }
        if (!V::kParked) device::stay_packed(packets);
        sums = team.reduce(sums);
        float mean = sums.first * per_column;
        float variance = fmaf(-mean, mean, sums.second * per_column);
        // All rows of a warp take part, because they share reductions.
        const bool far = variance < kLeft * sums.second * per_column;
        if (V::kAlone ? far : __any_sync(0xffffffffu, far)) {
            device::TwoSums again = device::TwoSums::neutral();
            for (int chunk = 0; chunk <= walk.last_chunk; ++chunk) {
                if (walk.last_chunk > 0) source.load(0, walk, slice, chunk, packets);
                source.take(slice, packets);
                again = again + distances_of<V>(slice, packets, chunk, mean);
            }
            if (!V::kParked) device::stay_packed(packets);
            again = team.reduce(again);
            const float distance = again.first * per_column;
            variance = fmaf(-distance, distance, again.second * per_column);
            mean += distance;
        }
        source.next();
        const float rstd = rsqrtf(fmaxf(variance, 0.0f) + params.epsilon);
        if (team.leads() && walk.active()) {
            if (params.mean != nullptr) params.mean[walk.row] = mean;
            if (params.rstd != nullptr) params.rstd[walk.row] = rstd;
        }

        const float shift = -mean * rstd;
        T* out = static_cast<T*>(params.out) + walk.row * geometry.columns;
        for (int chunk = walk.last_chunk; chunk >= 0; --chunk) {
            // The last chunk is still in registers.
            if (chunk != walk.last_chunk) source.load(0, walk, slice, chunk, packets);
            source.take(slice, packets);
#pragma unroll
            for (int vector = 0; vector < V::kVectors; ++vector) {
                float values[V::kPer];
                float scales[V::kPer];
                float offsets[V::kPer];
                device::unpack<T>(packets[vector], values);
                weight.values(slice, chunk, vector, scales);
                bias.values(slice, chunk, vector, offsets);
#pragma unroll
                for (int element = 0; element < V::kPer; ++element) {
                    // One instruction less in 16 bits, which counts here; with a large mean it
                    // loses no more than the rounding of the mean itself does.
                    const float normal = sizeof(T) == sizeof(float)
                                             ? (values[element] - mean) * rstd
                                             : fmaf(values[element], rstd, shift);
                    values[element] = fmaf(normal, scales[element], offsets[element]);
                }
                slice.store(out, chunk, vector, values);
            }
        }
    }
}

template <class T>
__global__ void layernorm_forward_plain_kernel(const __grid_constant__ LayerNormForward params) {
    const int columns = params.columns;
    for (std::int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
        const T* x = static_cast<const T*>(params.x) + row * columns;
        T* out = static_cast<T*>(params.out) + row * columns;
        float sum = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            sum += device::to_float(x[column]);
        }
        const float mean = plain_sum(sum) / columns;
        float squares = 0.0f;
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float distance = device::to_float(x[column]) - mean;
            squares += distance * distance;
        }
        const float rstd = 1.0f / sqrtf(plain_sum(squares) / columns + params.epsilon);
        for (int column = threadIdx.x; column < columns; column += blockDim.x) {
            const float weight = plain_column<T>(params.weight, params.wide_weight, column);
            const float bias = plain_column<T>(params.bias, params.wide_weight, column);
            const float normal = (device::to_float(x[column]) - mean) * rstd;
            out[column] = device::from_float<T>(normal * weight + bias);
        }
        if (threadIdx.x == 0) {
            if (params.mean != nullptr) params.mean[row] = mean;
            if (params.rstd != nullptr) params.rstd[row] = rstd;
        }
    }
}

}  // namespace

device::Enqueue prepare(const LayerNormForward& params) {
    return prepare_rows<RowUse::kCentredRow>(
        "layernorm_forward", params,
        {{"x", params.x}, {"weight", params.weight}, {"bias", params.bias}, {"out", params.out}},
        [](auto variant) { return layernorm_forward_kernel<decltype(variant)>; });
}

device::Enqueue prepare_plain(const LayerNormForward& params) {
    return prepare_plain_rows("layernorm_forward_plain", params, [](auto element) {
        return layernorm_forward_plain_kernel<decltype(element)>;
    });
}

}  // namespace norms
