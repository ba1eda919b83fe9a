// Types of tensor elements, as values that host code and bridges pass around.
#pragma once

#include <cstdint>
#include <string>

#include "Kernels/device/require.h"

namespace device {

// Spelled as in the Rust bridges, which share this type.
//
// Mxfp8, Nvfp4, Mxfp4 and Fp8Ue8m0 are operands with scales in tiles: e4m3 with a power of two per
// 32, pairs of e2m1 with an e4m3 scale per 16, pairs of e2m1 with a power of two per 32, and e4m3
// with a power of two per 128.
enum class Dtype : std::uint32_t { F32, F16, Bf16, E4m3, Mxfp8, Nvfp4, Mxfp4, Fp8Ue8m0 };

constexpr int bits_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::F32:
            return 32;
        case Dtype::F16:
        case Dtype::Bf16:
            return 16;
        case Dtype::E4m3:
        case Dtype::Mxfp8:
        case Dtype::Fp8Ue8m0:
            return 8;
        case Dtype::Nvfp4:
        case Dtype::Mxfp4:
            return 4;
    }
    return 0;
}

// Of one element that is not smaller.
constexpr int bytes_of(Dtype dtype) { return bits_of(dtype) / 8; }

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
        case Dtype::Mxfp8:
            return "mxfp8";
        case Dtype::Nvfp4:
            return "nvfp4";
        case Dtype::Mxfp4:
            return "mxfp4";
        case Dtype::Fp8Ue8m0:
            return "fp8_ue8m0";
    }
    return "unknown";
}

// The types that activations may have.
inline void require_activation(Dtype dtype) {
    require(bits_of(dtype) >= 16, std::string("no ") + name_of(dtype) + "; use f32, f16 or bf16");
}

}  // namespace device
