// A row of attention whose keys were split: merges what its parts left.
#pragma once

#include "Kernels/device/softmax_rows.cuh"

namespace device {

// Four dimensions of a row, of one part or merged.
struct PartialRow {
    // Largest score, in base 2.
    float largest = -INFINITY;
    // Sums of weights, and of weights times values.
    float total = 0.0f;
    float4 sums = {0.0f, 0.0f, 0.0f, 0.0f};

    __device__ __forceinline__ void add(float factor, const PartialRow& other) {
        total += factor * other.total;
        sums.x += factor * other.sums.x;
        sums.y += factor * other.sums.y;
        sums.z += factor * other.sums.z;
        sums.w += factor * other.sums.w;
    }

    // Rescaled to the largest maximum first.
    template <int kCount>
    __device__ __forceinline__ void add(const PartialRow (&others)[kCount]) {
        float top = largest;
#pragma unroll
        for (const PartialRow& other : others) top = fmaxf(top, other.largest);
        const PartialRow before = *this;
        *this = PartialRow();
        largest = top;
        add(shrink(before.largest, top), before);
#pragma unroll
        for (const PartialRow& other : others) add(shrink(other.largest, top), other);
    }
};

}  // namespace device
