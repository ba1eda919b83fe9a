#include "Kernels/quantize/bridge.h"

#include <stdexcept>

#include "Kernels/bridge/convert.h"
#include "Kernels/quantize/lib.rs.h"
#include "Kernels/quantize/quantize.h"

namespace quantize::bridge {
namespace {

using device::narrow;
using device::pointer;

quantize::Scaling scaling_of(Scaling scaling) {
    switch (scaling) {
        case Scaling::Row:
            return quantize::Scaling::kRow;
        case Scaling::Group:
            return quantize::Scaling::kGroup;
        case Scaling::GroupUe8m0:
            return quantize::Scaling::kGroupUe8m0;
        case Scaling::Block:
            return quantize::Scaling::kBlock;
    }
    throw std::invalid_argument("unknown scaling");
}

quantize::Matrix matrix_of(const Matrix& matrix) {
    return {scaling_of(matrix.scaling), matrix.dtype, static_cast<std::int64_t>(matrix.rows),
            narrow("columns", matrix.columns)};
}

template <class Params>
void launch_variant(const Params& params, Variant variant, std::size_t stream) {
    const auto cuda_stream = pointer<CUstream_st>(stream);
    if (variant == Variant::Plain) {
        launch_plain(params, cuda_stream);
    } else {
        launch(params, cuda_stream);
    }
}

}  // namespace

void quantize(const Matrix& matrix, std::size_t x, std::size_t quantized, std::size_t scales,
              Variant variant, std::size_t stream) {
    const Quantize params = {matrix_of(matrix), pointer<void>(x), pointer<void>(quantized),
                             pointer<void>(scales)};
    launch_variant(params, variant, stream);
}

void dequantize(const Matrix& matrix, std::size_t quantized, std::size_t scales, std::size_t out,
                Variant variant, std::size_t stream) {
    const Dequantize params = {matrix_of(matrix), pointer<void>(quantized), pointer<void>(scales),
                               pointer<void>(out)};
    launch_variant(params, variant, stream);
}

}  // namespace quantize::bridge
