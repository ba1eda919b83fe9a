// The plain product: fp32 arithmetic on CUDA cores, one 64 x 64 tile of the result per block.
#include <algorithm>

#include "Kernels/device/dispatch.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/scale_tiles.h"
#include "Kernels/gemm/element.cuh"
#include "Kernels/gemm/scheduler.cuh"

namespace gemm {
namespace {

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kThreads = 256;
// A thread's rows and columns of the tile.
constexpr int kPart = 4;

template <class T>
__device__ void plain_tile(const Gemm& p, const Tile& tile) {
    __shared__ float a_tile[kDepth][kTile + 1];
    __shared__ float b_tile[kDepth][kTile + 1];
    const int n = p.shape.n, k = p.shape.k;
    const T* a = static_cast<const T*>(p.a);
    const T* b = static_cast<const T*>(p.b) + std::int64_t{tile.group} * n * k / kPacking<T>;
    // A tile is narrower than a block of scales and never straddles two.
    const float* a_scales = kScaled<T> ? a_scales_of(p, tile) : nullptr;
    const float* b_scales = kScaled<T> ? b_scales_of(p, tile) : nullptr;
    // Rows of a masked layout, and columns, count from their group's first tile of scales.
    const auto whole_tiles = [](int rows) {
        return (rows + device::kScaleTileRows - 1) / device::kScaleTileRows *
               std::int64_t{device::kScaleTileRows};
    };
    const bool masked = p.shape.layout == Layout::kMasked;
    const std::int64_t a_scale_row =
        tile.in_group + (masked ? tile.group * whole_tiles(p.shape.rows) : 0);
    const std::int64_t b_scale_row = tile.group * whole_tiles(n);
    const auto tiled_scale = [&](const void* scales, std::int64_t row, int at) {
        const int across = device::scale_tiles_across(k / kScaleGroup<T>);
        const std::int64_t place = device::scale_place(row, at / kScaleGroup<T>, across);
        return scale_value<T>(static_cast<const std::uint8_t*>(scales)[place]);
    };
    const int part_row = threadIdx.x / (kTile / kPart) * kPart;
    const int part_column = threadIdx.x % (kTile / kPart) * kPart;
    float sums[kPart][kPart] = {};
    for (int start = 0; start < k; start += kDepth) {
        for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
            const int line = i / kDepth, depth = i % kDepth, at = start + depth;
            const std::int64_t row = tile.row + line;
            const int column = tile.column + line, block = at / kScaleBlock;
            float a_value = 0.0f, b_value = 0.0f;
            if (row < tile.limit && at < k) {
                a_value = value_at(a, row * k + at);
                if constexpr (kBlockScaled<T>)
                    a_value *= tiled_scale(p.a_scales, a_scale_row + line, at);
                if (kScaled<T>) a_value *= a_scales[block * a_scale_line(p.shape) + line];
            }
            if (column < n && at < k) {
                b_value = value_at(b, std::int64_t{column} * k + at);
                if constexpr (kBlockScaled<T>)
                    b_value *= tiled_scale(p.b_scales, b_scale_row + column, at);
                if (kScaled<T>) b_value *= b_scales[block];
            }
            a_tile[depth][line] = a_value;
            b_tile[depth][line] = b_value;
        }
        __syncthreads();  // the tiles are complete
        for (int depth = 0; depth < kDepth; ++depth) {
            for (int i = 0; i < kPart; ++i) {
                for (int j = 0; j < kPart; ++j) {
                    sums[i][j] += a_tile[depth][part_row + i] * b_tile[depth][part_column + j];
                }
            }
        }
        __syncthreads();  // everyone has read them
    }
    using Out = OutOf<T>;
    const float factor = kTensorScaled<T> ? *p.tensor_scale : 1.0f;
    for (int i = 0; i < kPart; ++i) {
        const std::int64_t row = tile.row + part_row + i;
        for (int j = 0; j < kPart; ++j) {
            const int column = tile.column + part_column + j;
            if (row < tile.limit && column < n) {
                static_cast<Out*>(p.out)[row * n + column] = narrow<Out>(sums[i][j] * factor);
            }
        }
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads) plain_kernel(const __grid_constant__ Gemm p) {
    const Shape& shape = p.shape;
    for (std::int64_t number = blockIdx.y;; number += gridDim.y) {
        Tile tile = {};
        tile.column = blockIdx.x * kTile;
        if (shape.layout == Layout::kMasked) {
            const int room = (shape.rows + kTile - 1) / kTile;
            tile.group = static_cast<int>(number / room);
            if (tile.group >= shape.groups) return;
            tile.in_group = number % room * kTile;
            const std::int64_t start = std::int64_t{tile.group} * shape.rows;
            tile.row = start + tile.in_group;
            tile.limit = start + p.index[tile.group];
        } else {
            tile.row = tile.in_group = number * kTile;
            tile.limit = shape.rows;
            if (tile.row >= shape.rows) return;
            if (shape.layout == Layout::kContiguous) tile.group = p.index[tile.row];
        }
        // A group's rows come first in its tile: if the first row is padding, so are all.
        if (tile.group >= 0 && tile.row < tile.limit) plain_tile<T>(p, tile);
    }
}

template <class T>
void launch_plain_type(const Gemm& params, cudaStream_t stream) {
    const Shape& shape = params.shape;
    const std::int64_t groups = shape.layout == Layout::kMasked ? shape.groups : 1;
    const std::int64_t tiles = groups * ((shape.rows + kTile - 1) / kTile);
    device::Launch launch;
    launch.grid = dim3(static_cast<unsigned>((shape.n + kTile - 1) / kTile),
                       static_cast<unsigned>(std::min<std::int64_t>(tiles, 65535)));
    launch.block = dim3(kThreads);
    device::launch("gemm_plain", plain_kernel<T>, launch, stream, params);
}

}  // namespace

void launch_plain(const Gemm& params, cudaStream_t stream) {
    validate(params);
    device::dispatch<__nv_bfloat16, __half, __nv_fp8_e4m3, Fp8Ue8m0, Mxfp8, Nvfp4, Mxfp4>(
        params.shape.dtype,
        [&](auto element) { launch_plain_type<decltype(element)>(params, stream); });
}

}  // namespace gemm
