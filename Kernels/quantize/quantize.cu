#include "Kernels/quantize/blocks.cuh"
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
device::Enqueue prepare_row_vectors(const Quantize& params, const RowConfig& config) {
    const device::Launch shape =
        device::blocks_of(divide_up(params.matrix.rows, config.rows_per_block),
                          dim3(config.threads_per_row, config.rows_per_block));
    return device::prepare("quantize_row", quantize_row_kernel<T, kVectors>, shape,
                           arguments_of(params), config.chunks);
}

template <class T>
device::Enqueue prepare_row(const Quantize& params) {
    const RowConfig config = choose_row(params.matrix.columns / device::kPerPacket<T>);
    switch (config.vectors) {
        case 1:
            return prepare_row_vectors<T, 1>(params, config);
        case 2:
            return prepare_row_vectors<T, 2>(params, config);
        case 4:
            return prepare_row_vectors<T, 4>(params, config);
        case 8:
            return prepare_row_vectors<T, 8>(params, config);
    }
    device::refuse("no kernel for " + std::to_string(config.vectors) + " vectors");
}

template <class T, bool kUe8m0>
device::Enqueue prepare_group(const Quantize& params) {
    const std::int64_t across = divide_up(params.matrix.columns, kGroup);
    const std::int64_t packets_per_row = across * kGroup / device::kPerPacket<T>;
    return device::prepare(
        "quantize_group", quantize_group_kernel<T, kUe8m0, kGroupPackets>,
        device::cover(params.matrix.rows * packets_per_row, kGroupThreads, kGroupPackets),
        arguments_of(params), device::Divider(packets_per_row));
}

template <class T>
device::Enqueue prepare_block(const Quantize& params) {
    const int across = divide_up(params.matrix.columns, kGroup);
    return device::prepare(
        "quantize_block", quantize_block_kernel<T>,
        device::cover(divide_up(params.matrix.rows, kGroup) * across * kBlockThreads<T>,
                      kBlockThreads<T>),
        arguments_of(params), across);
}

template <class T, Scaling kScaling>
device::Enqueue prepare_tiled(const Quantize& params) {
    const TiledArguments arguments = tiled_arguments(params.matrix, params.x, params.quantized,
                                                     params.scales, params.tensor_scale);
    // Whole tiles of scales.
    const std::int64_t chunks =
        std::int64_t{arguments.across} * kScaleTileColumns * tiled_group(kScaling) / kChunk;
    const std::int64_t rows = divide_up(params.matrix.rows, kScaleTileRows) * kScaleTileRows;
    return device::with_units({params.x}, [&](auto units) {
        return device::prepare("quantize_tiled", quantize_tiled_kernel<T, kScaling, units>,
                               device::cover(rows * chunks, kGroupThreads), arguments,
                               device::Divider(chunks));
    });
}

}  // namespace

void check(const Quantize& params) {
    if (is_tiled(params.matrix.scaling)) {
        // Threads, those of the padding included.
        const std::int64_t rows = divide_up(params.matrix.rows, kScaleTileRows) * kScaleTileRows;
        return check(params.matrix, rows * divide_up(params.matrix.columns, 128) * 8);
    }
    const std::int64_t columns = divide_up(params.matrix.columns, kGroup) * kGroup;
    check(params.matrix, columns / 4 * params.matrix.rows);
}

device::Enqueue prepare(const Quantize& params) {
    check(params);
    device::require_aligned("x", params.x);
    device::require_aligned("quantized", params.quantized);
    device::require_aligned("scales", params.scales);
    if (params.matrix.scaling == Scaling::Nvfp4) {
        device::require_aligned("tensor_scale", params.tensor_scale);
    }
    return device::dispatch_activations(params.matrix.dtype, [&](auto element) {
        using T = decltype(element);
        switch (params.matrix.scaling) {
            case Scaling::Row:
                return prepare_row<T>(params);
            case Scaling::Group:
                return prepare_group<T, false>(params);
            case Scaling::GroupUe8m0:
                return prepare_group<T, true>(params);
            case Scaling::Block:
                return prepare_block<T>(params);
            case Scaling::Mxfp8:
                return prepare_tiled<T, Scaling::Mxfp8>(params);
            case Scaling::Nvfp4:
                return prepare_tiled<T, Scaling::Nvfp4>(params);
            case Scaling::Mxfp4:
                return prepare_tiled<T, Scaling::Mxfp4>(params);
        }
        device::refuse("unknown scaling");
    });
}

}  // namespace quantize
