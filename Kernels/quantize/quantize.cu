#include "Kernels/device/launch.h"
#include "Kernels/quantize/check.h"
#include "Kernels/quantize/quantize.cuh"

namespace quantize {
namespace {

constexpr int kGroupThreads = 256;
constexpr int kGroupPackets = 4;

QuantizeArguments arguments_of(const Quantize& params) {
    return {params.x, static_cast<uint8_t*>(params.quantized), params.scales, params.matrix.rows,
            params.matrix.columns};
}

template <class T, int kVectors>
void launch_row_vectors(const Quantize& params, const RowConfig& config, cudaStream_t stream) {
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(divide_up(params.matrix.rows, config.rows_per_block)));
    shape.block = dim3(static_cast<unsigned>(config.threads_per_row),
                       static_cast<unsigned>(config.rows_per_block));
    device::launch("quantize_row", quantize_row_kernel<T, kVectors>, shape, stream,
                   arguments_of(params), config.chunks);
}

template <class T>
void launch_row(const Quantize& params, cudaStream_t stream) {
    const RowConfig config = choose_row(params.matrix.columns / device::kPerPacket<T>);
    switch (config.vectors) {
        case 1:
            return launch_row_vectors<T, 1>(params, config, stream);
        case 2:
            return launch_row_vectors<T, 2>(params, config, stream);
        case 4:
            return launch_row_vectors<T, 4>(params, config, stream);
        case 8:
            return launch_row_vectors<T, 8>(params, config, stream);
    }
    throw std::invalid_argument("no kernel for " + std::to_string(config.vectors) + " vectors");
}

template <class T, bool kUe8m0>
void launch_group(const Quantize& params, cudaStream_t stream) {
    const std::int64_t across = divide_up(params.matrix.columns, kGroup);
    const std::int64_t packets_per_row = across * kGroup / device::kPerPacket<T>;
    const std::int64_t packets = params.matrix.rows * packets_per_row;
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(divide_up(packets, kGroupThreads * kGroupPackets)));
    shape.block = dim3(kGroupThreads);
    device::launch("quantize_group", quantize_group_kernel<T, kUe8m0, kGroupPackets>, shape, stream,
                   arguments_of(params), device::Divider(packets_per_row));
}

template <class T>
void launch_block(const Quantize& params, cudaStream_t stream) {
    const std::int64_t across = divide_up(params.matrix.columns, kGroup);
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(divide_up(params.matrix.rows, kGroup) * across));
    shape.block = dim3(kBlockThreads<T>);
    device::launch("quantize_block", quantize_block_kernel<T>, shape, stream, arguments_of(params),
                   static_cast<int>(across));
}

}  // namespace

void launch(const Quantize& params, cudaStream_t stream) {
    const Matrix& matrix = params.matrix;
    check(matrix, divide_up(matrix.columns, kGroup) * kGroup / 4 * matrix.rows);
    device::require_aligned("x", params.x);
    device::require_aligned("quantized", params.quantized);
    device::require_aligned("scales", params.scales);
    device::dispatch_activations(matrix.dtype, [&](auto element) {
        using T = decltype(element);
        switch (matrix.scaling) {
            case Scaling::kRow:
                return launch_row<T>(params, stream);
            case Scaling::kGroup:
                return launch_group<T, false>(params, stream);
            case Scaling::kGroupUe8m0:
                return launch_group<T, true>(params, stream);
            case Scaling::kBlock:
                return launch_block<T>(params, stream);
        }
        throw std::invalid_argument("unknown scaling");
    });
}

}  // namespace quantize
