// What every row kernel here shares: its geometry argument, the walk over rows, and the choice of
// an instantiation from a Config.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "Kernels/device/launch.h"
#include "Kernels/device/row_slice.cuh"
#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

// The part of a Config that kernels read, with the shape.
struct Geometry {
    std::int64_t rows;
    int columns;
    int cluster_blocks;
    int chunks;
};

// The rows of one thread: all threads of a block take the same number of steps, so that they meet
// at barriers; a step past the last row is not `active`.
struct RowWalk {
    std::int64_t row;
    std::int64_t first_of_block;
    std::int64_t step;
    std::int64_t rows;

    __device__ explicit RowWalk(const Geometry& geometry)
        : first_of_block(static_cast<std::int64_t>(blockIdx.x / geometry.cluster_blocks) *
                         blockDim.y),
          step(static_cast<std::int64_t>(gridDim.x / geometry.cluster_blocks) * blockDim.y),
          rows(geometry.rows) {
        row = first_of_block + threadIdx.y;
    }
    __device__ bool more() const { return first_of_block < rows; }
    __device__ bool active() const { return row < rows; }
    __device__ void next() {
        first_of_block += step;
        row += step;
    }
};

template <class Element, int kVectorCount, bool kIsAligned>
struct Variant {
    using T = Element;
    static constexpr int kVectors = kVectorCount;
    static constexpr bool kAligned = kIsAligned;
};

// Only kernels with the most vectors walk a row in chunks; for the others a row is one chunk.
template <int kVectors>
constexpr bool kChunked = kVectors == kMostVectors;

template <class T, class Function>
void dispatch_vectors(const Config& config, Function&& function) {
    if (!config.aligned) {
        if (config.vectors == 2) return function(Variant<T, 2, false>{});
        if (config.vectors == 8) return function(Variant<T, 8, false>{});
    } else {
        if (config.vectors == 1) return function(Variant<T, 1, true>{});
        if (config.vectors == 2) return function(Variant<T, 2, true>{});
        if (config.vectors == 4) return function(Variant<T, 4, true>{});
        if (config.vectors == 8) return function(Variant<T, 8, true>{});
    }
    throw std::invalid_argument("no kernel for " + describe(config));
}

template <class Function>
void dispatch_type(ElementType type, Function&& function) {
    switch (type) {
        case ElementType::kF32:
            return function(float{});
        case ElementType::kF16:
            return function(__half{});
        case ElementType::kBf16:
            return function(__nv_bfloat16{});
    }
    throw std::invalid_argument("unknown element type");
}

template <class Function>
void dispatch(ElementType type, const Config& config, Function&& function) {
    dispatch_type(type,
                  [&](auto element) { dispatch_vectors<decltype(element)>(config, function); });
}

template <class Params>
Shape shape_of(const Params& params) {
    return {params.rows, params.columns, element_bytes(params.type)};
}

template <class Params>
Geometry geometry_of(const Params& params, const Config& config) {
    return {params.rows, params.columns, config.cluster_blocks, config.chunks};
}

inline device::Launch launch_shape(const Config& config) {
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(config.blocks));
    shape.block = dim3(static_cast<unsigned>(config.threads_per_row),
                       static_cast<unsigned>(config.rows_per_block));
    shape.cluster_blocks = config.cluster_blocks;
    return shape;
}

inline void require_aligned(const char* name, const void* address) {
    if (reinterpret_cast<std::uintptr_t>(address) % kPacketBytes != 0) {
        throw std::invalid_argument(std::string(name) + " is not aligned to 16 bytes");
    }
}

inline void require_weight_type(ElementType type, ElementType weight_type) {
    if (weight_type != ElementType::kF32 && weight_type != type) {
        throw std::invalid_argument("a weight must be fp32 or of the activations' type");
    }
}

}  // namespace norms
