// GELU, SwiGLU and GEGLU over dense tensors, forward and backward.
//
//   function   forward                     backward
//   Gelu       out = gelu(x)               x_gradient = gelu'(x) * out_gradient
//   GeluTanh   the same with GELU by tanh
//   SwiGlu     out = silu(gate) * up       gradients of gate and up
//   GeGlu      out = gelu_tanh(gate) * up  gradients of gate and up
//
// Outputs may be the same memory as inputs: an element is read by the thread that writes it.
#pragma once

#include <cstdint>

#include "Kernels/device/dtype.h"
#include "Kernels/device/launch.h"

namespace activations {

// Shared with Rust, like Gate.
enum class Function : std::int32_t { Gelu, GeluTanh, SwiGlu, GeGlu };
enum class Pass { kForward, kBackward };

struct Activation {
    Function function;
    Pass pass;
    device::Dtype dtype;
    std::int64_t elements;
    // x or gate.
    const void* first;
    // up; null if the function has none.
    const void* second;
    // Backward only.
    const void* out_gradient;
    // out, or the gradient of x or gate.
    void* first_out;
    // The gradient of up; null if there is none.
    void* second_out;
};

enum class Gate : std::int32_t { Silu, GeluTanh, Gelu };

// out [rows, columns] = unit(gate) * up; an input row is gate and up, `columns` elements each.
struct Packed {
    Gate gate;
    device::Dtype dtype;
    std::int64_t rows;
    std::int64_t columns;
    const void* input;
    void* out;
};

// Throw std::invalid_argument for a shape or type that the kernels do not support.
void check(const Activation& params);
void check(const Packed& params);

// These check addresses too.
device::Enqueue prepare(const Activation& params);
device::Enqueue prepare(const Packed& params);

// One thread per element and the library's functions: the references for whole tensors.
device::Enqueue prepare_plain(const Activation& params);
device::Enqueue prepare_plain(const Packed& params);

}  // namespace activations
