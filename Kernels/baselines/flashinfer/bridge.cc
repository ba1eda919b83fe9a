#include "Kernels/baselines/flashinfer/bridge.h"

#include <stdexcept>
#include <string>

#include "Kernels/baselines/flashinfer/lib.rs.h"
#include "Kernels/baselines/flashinfer/norms.h"

namespace fi::bridge {
namespace {

Type type(Dtype dtype) {
    switch (dtype) {
        case Dtype::F16:
            return Type::kF16;
        case Dtype::Bf16:
            return Type::kBf16;
    }
    throw std::invalid_argument("unknown dtype");
}

template <class T>
T* pointer(std::size_t address) {
    return reinterpret_cast<T*>(address);
}

// The kernels multiply row and width in 32 bits.
template <class Params>
void set_shape(Params& params, const Matrix& matrix) {
    if (matrix.columns == 0 || matrix.rows > (std::size_t{1} << 32) / matrix.columns) {
        throw std::invalid_argument(std::to_string(matrix.rows) + " x " +
                                    std::to_string(matrix.columns) +
                                    " elements; FlashInfer's offsets are 32 bits wide");
    }
    params.rows = static_cast<std::uint32_t>(matrix.rows);
    params.columns = static_cast<std::uint32_t>(matrix.columns);
}

}  // namespace

void rmsnorm(const RmsNorm& tensors, const Matrix& matrix, std::size_t stream) {
    fi::RmsNorm params = {};
    set_shape(params, matrix);
    params.x = pointer<void>(tensors.x);
    params.weight = pointer<void>(tensors.weight);
    params.out = pointer<void>(tensors.out);
    params.type = type(matrix.dtype);
    params.epsilon = tensors.epsilon;
    launch(params, pointer<CUstream_st>(stream));
}

void fused_add_rmsnorm(const FusedAddRmsNorm& tensors, const Matrix& matrix, std::size_t stream) {
    fi::FusedAddRmsNorm params = {};
    set_shape(params, matrix);
    params.x = pointer<void>(tensors.x);
    params.residual = pointer<void>(tensors.residual);
    params.weight = pointer<void>(tensors.weight);
    params.type = type(matrix.dtype);
    params.epsilon = tensors.epsilon;
    launch(params, pointer<CUstream_st>(stream));
}

void layernorm(const LayerNorm& tensors, const Matrix& matrix, std::size_t stream) {
    if (matrix.dtype != Dtype::Bf16) {
        throw std::invalid_argument("FlashInfer's LayerNorm takes bf16 activations only");
    }
    fi::LayerNorm params = {};
    set_shape(params, matrix);
    params.x = pointer<void>(tensors.x);
    params.weight = pointer<float>(tensors.weight);
    params.bias = pointer<float>(tensors.bias);
    params.out = pointer<void>(tensors.out);
    params.epsilon = tensors.epsilon;
    launch(params, pointer<CUstream_st>(stream));
}

}  // namespace fi::bridge
