// Dequantisation: a thread first loads, then widens kPackets runs of 8 (fp32: 4) values.
#include <cstdint>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/divider.h"
#include "Kernels/device/fp8.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/quantize/blocks.cuh"
#include "Kernels/quantize/check.h"

namespace quantize {
namespace {

struct DequantizeArguments {
    const uint8_t* quantized;
    const void* scales;
    void* out;
    std::int64_t rows;
    int columns;
    // Scales per row, and log2 of the rows and columns of a group.
    int across;
    int row_shift;
    int column_shift;
};

template <class T>
struct Run;
template <>
struct Run<float> {
    using Codes = uint32_t;
    static __device__ Codes load(const uint8_t* from) {
        return *reinterpret_cast<const uint32_t*>(from);
    }
    static __device__ uint16_t pair(Codes codes, int index) {
        return static_cast<uint16_t>(codes >> 16 * index);
    }
};
struct RunOfEight {
    using Codes = uint2;
    static __device__ Codes load(const uint8_t* from) { return device::ptx::load_8(from); }
    static __device__ uint16_t pair(Codes codes, int index) {
        return static_cast<uint16_t>((index < 2 ? codes.x : codes.y) >> 16 * (index % 2));
    }
};
template <>
struct Run<__half> : RunOfEight {};
template <>
struct Run<__nv_bfloat16> : RunOfEight {};

template <bool kUe8m0>
__device__ __forceinline__ float scale_at(const void* scales, std::int64_t index) {
    if constexpr (!kUe8m0) return __ldg(static_cast<const float*>(scales) + index);
    return device::ue8m0_float(__ldg(static_cast<const uint8_t*>(scales) + index));
}

template <class T, bool kUe8m0, int kPackets>
__global__ void __launch_bounds__(256)
    dequantize_kernel(const __grid_constant__ DequantizeArguments arguments,
                      const __grid_constant__ device::Divider packets_per_row) {
    constexpr int kPer = device::kPerPacket<T>;
    const uint32_t first = (blockIdx.x * kPackets) * blockDim.x + threadIdx.x;
    typename Run<T>::Codes codes[kPackets];
    float scales[kPackets];
#pragma unroll
    for (int packet = 0; packet < kPackets; ++packet) {
        const uint32_t index = first + packet * blockDim.x;
        const uint32_t row = packets_per_row.quotient(index);
        if (row >= arguments.rows) break;
        codes[packet] = Run<T>::load(arguments.quantized + static_cast<std::int64_t>(index) * kPer);
        const int column = static_cast<int>(index - packets_per_row.times(row)) * kPer;
        const std::int64_t scale =
            static_cast<std::int64_t>(row >> arguments.row_shift) * arguments.across +
            (column >> arguments.column_shift);
        scales[packet] = scale_at<kUe8m0>(arguments.scales, scale);
    }
#pragma unroll
    for (int packet = 0; packet < kPackets; ++packet) {
        const uint32_t index = first + packet * blockDim.x;
        if (packets_per_row.quotient(index) >= arguments.rows) break;
        float values[kPer];
#pragma unroll
        for (int pair = 0; pair < kPer / 2; ++pair) {
            const float2 both = device::e4m3_floats(Run<T>::pair(codes[packet], pair));
            values[2 * pair] = both.x * scales[packet];
            values[2 * pair + 1] = both.y * scales[packet];
        }
        device::ptx::store_16(static_cast<uint4*>(arguments.out) + index, device::pack<T>(values));
    }
}

// From a sweep on an H200 (bf16, 32768 x 7168; 64 to 256 threads, 1 to 8 packets): 3 % faster than
// 256 threads with 4 packets.
constexpr int kThreads = 128;
constexpr int kPacketsPerThread = 2;
// Past every column: a row has one scale.
constexpr int kWholeRow = 31;
constexpr int kGroupShift = 7;
static_assert(1 << kGroupShift == kGroup, "the shift is log2 of a group");

template <class T, Scaling kScaling>
device::Enqueue prepare_tiled(const Dequantize& params) {
    const TiledArguments arguments = tiled_arguments(params.matrix, params.out, params.quantized,
                                                     params.scales, params.tensor_scale);
    const std::int64_t chunks = params.matrix.columns / kChunk;
    return device::with_units({params.out}, [&](auto units) {
        return device::prepare("dequantize_tiled", dequantize_tiled_kernel<T, kScaling, units>,
                               device::cover(params.matrix.rows * chunks, kThreads), arguments,
                               device::Divider(chunks));
    });
}

}  // namespace

void check(const Dequantize& params) {
    check(params.matrix, params.matrix.columns / 4 * params.matrix.rows);
}

device::Enqueue prepare(const Dequantize& params) {
    const Matrix& matrix = params.matrix;
    check(params);
    device::require_aligned("quantized", params.quantized);
    device::require_aligned("scales", params.scales);
    device::require_aligned("out", params.out);
    if (is_tiled(matrix.scaling)) {
        if (matrix.scaling == Scaling::Nvfp4) {
            device::require_aligned("tensor_scale", params.tensor_scale);
        }
        return device::dispatch_activations(matrix.dtype, [&](auto element) {
            using T = decltype(element);
            switch (matrix.scaling) {
                case Scaling::Nvfp4:
                    return prepare_tiled<T, Scaling::Nvfp4>(params);
                case Scaling::Mxfp4:
                    return prepare_tiled<T, Scaling::Mxfp4>(params);
                default:
                    return prepare_tiled<T, Scaling::Mxfp8>(params);
            }
        });
    }
    const bool by_row = matrix.scaling == Scaling::Row;
    const DequantizeArguments arguments = {static_cast<const uint8_t*>(params.quantized),
                                           params.scales,
                                           params.out,
                                           matrix.rows,
                                           matrix.columns,
                                           by_row ? 1 : divide_up(matrix.columns, kGroup),
                                           matrix.scaling == Scaling::Block ? kGroupShift : 0,
                                           by_row ? kWholeRow : kGroupShift};
    return device::dispatch_activations(matrix.dtype, [&](auto element) {
        using T = decltype(element);
        const std::int64_t packets_per_row = matrix.columns / device::kPerPacket<T>;
        return device::prepare(
            "dequantize",
            matrix.scaling == Scaling::GroupUe8m0 ? dequantize_kernel<T, true, kPacketsPerThread>
                                                  : dequantize_kernel<T, false, kPacketsPerThread>,
            device::cover(matrix.rows * packets_per_row, kThreads, kPacketsPerThread), arguments,
            device::Divider(packets_per_row));
    });
}

}  // namespace quantize
