#include "Kernels/baselines/transformer_engine/bridge.h"

#include <stdexcept>

#include "Kernels/baselines/transformer_engine/lib.rs.h"

namespace transformer_engine_bridge {
namespace {

// The ABI of transformer_engine.h and normalization.h, release 2.20.
constexpr std::size_t kMostDimensions = 15;
constexpr std::int32_t kByte = 0;
constexpr int kRowwiseData = 0;
// Also of tensors that are not scaled.
constexpr int kTensorScaling = 0;
constexpr bool kZeroCentered = false;

struct Shape {
    std::size_t extents[kMostDimensions];
    std::size_t rank;
};

struct BasicTensor {
    void* data;
    std::int32_t dtype;
    Shape shape;
};
static_assert(sizeof(BasicTensor) == 144, "a pointer, an enumerator, 15 extents, their number");

using Stream = void*;
using CreateTensor = Handle (*)(int scaling);
using SetTensor = void (*)(Handle, int parameter, const void* value, std::size_t bytes);
using TensorBytes = std::size_t (*)(Handle);
using EnableCudnn = void (*)(bool);

template <class Function>
Function as(std::size_t address) {
    return reinterpret_cast<Function>(address);
}

std::size_t arguments(Signature signature) {
    switch (signature) {
        case Signature::RmsNormForward:
            return 4;
        case Signature::RmsNormBackward:
            return 6;
        case Signature::LayerNormForward:
            return 6;
        case Signature::LayerNormBackward:
            return 8;
        case Signature::Unary:
            return 2;
        case Signature::Gradient:
            return 3;
    }
    throw std::invalid_argument("no such signature");
}

}  // namespace

Operation::Operation(const Functions& functions, Signature signature,
                     rust::Slice<const Tensor> tensors, float epsilon, int multiprocessors)
    : functions_(std::make_unique<const Functions>(functions)),
      signature_(signature),
      epsilon_(epsilon),
      multiprocessors_(multiprocessors) {
    if (tensors.size() != arguments(signature)) throw std::invalid_argument("number of tensors");
    for (std::size_t i = 0; i <= tensors.size(); ++i) {
        tensors_.emplace_back(as<CreateTensor>(functions.create_tensor)(kTensorScaling),
                              as<DestroyTensor>(functions.destroy_tensor));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) set(i, tensors[i]);
}

void Operation::set(std::size_t place, const Tensor& tensor) const {
    BasicTensor value = {};
    value.data = reinterpret_cast<void*>(tensor.address);
    value.dtype = tensor.dtype;
    value.shape.extents[0] = tensor.rows;
    value.shape.extents[1] = tensor.columns;
    value.shape.rank = tensor.columns == 0 ? 1 : 2;
    const auto set_tensor = as<SetTensor>(functions_->set_tensor);
    set_tensor(tensors_[place].get(), kRowwiseData, &value, sizeof(value));
}

std::size_t Operation::workspace_bytes() const {
    const bool has_workspace = signature_ != Signature::Unary && signature_ != Signature::Gradient;
    if (!has_workspace) return 0;
    // With an empty workspace a norm chooses and compiles its kernels, and says what it needs.
    enqueue(0);
    return as<TensorBytes>(functions_->tensor_bytes)(tensors_.back().get());
}

void Operation::set_workspace(std::size_t address, std::size_t bytes) const {
    set(tensors_.size() - 1, {address, kByte, bytes, 0});
}

void Operation::enqueue(std::size_t stream_address) const {
    const auto t = [this](std::size_t place) { return tensors_[place].get(); };
    const std::size_t function = functions_->operation;
    const int sms = multiprocessors_;
    const auto stream = reinterpret_cast<Stream>(stream_address);
    switch (signature_) {
        case Signature::RmsNormForward:
            as<void (*)(Handle, Handle, float, Handle, Handle, Handle, int, bool, Stream)>(
                function)(t(0), t(1), epsilon_, t(2), t(3), t(4), sms, kZeroCentered, stream);
            return;
        case Signature::RmsNormBackward:
            as<void (*)(Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, bool, Stream)>(
                function)(t(0), t(1), t(2), t(3), t(4), t(5), t(6), sms, kZeroCentered, stream);
            return;
        case Signature::LayerNormForward:
            as<void (*)(Handle, Handle, Handle, float, Handle, Handle, Handle, Handle, int, bool,
                        Stream)>(function)(t(0), t(1), t(2), epsilon_, t(3), t(4), t(5), t(6), sms,
                                           kZeroCentered, stream);
            return;
        case Signature::LayerNormBackward:
            as<void (*)(Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, Handle, int,
                        bool, Stream)>(function)(t(0), t(1), t(2), t(3), t(4), t(5), t(6), t(7),
                                                 t(8), sms, kZeroCentered, stream);
            return;
        case Signature::Unary:
            as<void (*)(Handle, Handle, Stream)>(function)(t(0), t(1), stream);
            return;
        case Signature::Gradient:
            as<void (*)(Handle, Handle, Handle, Stream)>(function)(t(0), t(1), t(2), stream);
            return;
    }
}

void use_own_norms(std::size_t enable_cudnn_forward, std::size_t enable_cudnn_backward) {
    as<EnableCudnn>(enable_cudnn_forward)(false);
    as<EnableCudnn>(enable_cudnn_backward)(false);
}

std::unique_ptr<Operation> prepare(const Functions& functions, Signature signature,
                                   rust::Slice<const Tensor> tensors, float epsilon,
                                   std::int32_t multiprocessors) {
    return std::make_unique<Operation>(functions, signature, tensors, epsilon, multiprocessors);
}

}  // namespace transformer_engine_bridge
