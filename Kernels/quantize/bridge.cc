#include "Kernels/quantize/bridge.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/quantize/lib.rs.h"
#include "Kernels/quantize/quantize.h"

namespace quantize::bridge {
namespace {

device::ElementType element_type(Dtype dtype) {
    switch (dtype) {
        case Dtype::F32:
            return device::ElementType::kF32;
        case Dtype::F16:
            return device::ElementType::kF16;
        case Dtype::Bf16:
            return device::ElementType::kBf16;
    }
    throw std::invalid_argument("unknown dtype");
}

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
    if (matrix.columns > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw std::invalid_argument("columns is " + std::to_string(matrix.columns) +
                                    "; that does not fit in 31 bits");
    }
    return {scaling_of(matrix.scaling), element_type(matrix.dtype),
            static_cast<std::int64_t>(matrix.rows), static_cast<int>(matrix.columns)};
}

void* pointer(std::size_t address) { return reinterpret_cast<void*>(address); }

template <class Params>
void launch_variant(const Params& params, Variant variant, std::size_t stream) {
    const auto cuda_stream = reinterpret_cast<cudaStream_t>(stream);
    if (variant == Variant::Plain) {
        launch_plain(params, cuda_stream);
    } else {
        launch(params, cuda_stream);
    }
}

}  // namespace

void quantize(const Matrix& matrix, std::size_t x, std::size_t quantized, std::size_t scales,
              Variant variant, std::size_t stream) {
    const Quantize params = {matrix_of(matrix), pointer(x), pointer(quantized), pointer(scales)};
    launch_variant(params, variant, stream);
}

void dequantize(const Matrix& matrix, std::size_t quantized, std::size_t scales, std::size_t out,
                Variant variant, std::size_t stream) {
    const Dequantize params = {matrix_of(matrix), pointer(quantized), pointer(scales),
                               pointer(out)};
    launch_variant(params, variant, stream);
}

}  // namespace quantize::bridge
