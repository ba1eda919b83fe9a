// GELU, SwiGLU and GEGLU over dense tensors, forward and backward.
//
//   function   forward                     backward
//   kGelu      out = gelu(x)               x_gradient = gelu'(x) * out_gradient
//   kGeluTanh  the same with GELU by tanh
//   kSwiGlu    out = silu(gate) * up       gradients of gate and up
//   kGeGlu     out = gelu_tanh(gate) * up  gradients of gate and up
//
// Outputs may be the same memory as inputs: an element is read by the thread that writes it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "Kernels/device/dtype.h"

namespace activations {

enum class Function { kGelu, kGeluTanh, kSwiGlu, kGeGlu };
enum class Pass { kForward, kBackward };

struct Activation {
    Function function;
    Pass pass;
    device::Dtype dtype;
    std::int64_t elements;
    // x or gate.
    const void* first;
    // up; null where the function has none.
    const void* second;
    // Backward only.
    const void* out_gradient;
    // out, or the gradient of x or gate.
    void* first_out;
    // The gradient of up; null where there is none.
    void* second_out;
};

enum class Gate { kSilu, kGeluTanh, kGelu };

// out [rows, columns] = unit(gate) * up, where a row of the input is gate and up, `columns`
// elements each.
struct Packed {
    Gate gate;
    device::Dtype dtype;
    std::int64_t rows;
    std::int64_t columns;
    const void* input;
    void* out;
};

// Throw std::invalid_argument for what they cannot do, std::runtime_error for what CUDA refuses.
void launch(const Activation& params, cudaStream_t stream);
void launch(const Packed& params, cudaStream_t stream);

// One thread an element and the library's functions: the references for whole tensors.
void launch_plain(const Activation& params, cudaStream_t stream);
void launch_plain(const Packed& params, cudaStream_t stream);

}  // namespace activations
