// Types of tensor elements, as values that host code and bridges pass around.
#pragma once

#include <cstdint>
#include <string>

#include "Kernels/device/require.h"

namespace device {

// Spelled as in the Rust bridges, which share this type.
enum class Dtype : std::uint32_t { F32, F16, Bf16, E4m3 };

constexpr int bytes_of(Dtype dtype) {
    return dtype == Dtype::F32 ? 4 : dtype == Dtype::E4m3 ? 1 : 2;
}

constexpr const char* name_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::F32:
            return "f32";
        case Dtype::F16:
            return "f16";
        case Dtype::Bf16:
            return "bf16";
        case Dtype::E4m3:
            return "fp8_e4m3";
    }
    return "unknown";
}

// The types that activations may have.
inline void require_activation(Dtype dtype) {
    require(dtype != Dtype::E4m3, std::string("no ") + name_of(dtype) + "; use f32, f16 or bf16");
}

}  // namespace device
