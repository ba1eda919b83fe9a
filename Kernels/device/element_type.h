// The types that activations may have, as a value and as a template argument.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace device {

enum class ElementType { kF32, kF16, kBf16 };

constexpr int element_bytes(ElementType type) { return type == ElementType::kF32 ? 4 : 2; }

// Calls `function` with a value of the type.
template <class Function>
void dispatch_type(ElementType type, Function&& function) {
    switch (type) {
        case ElementType::kF32:
            return function(float{});
        case ElementType::kF16:
            return function(__half{});
        case ElementType::kBf16:
            return function(__nv_bfloat16{});
    }
    throw std::invalid_argument("unknown element type");
}

inline void require_aligned(const char* name, const void* address) {
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) {
        throw std::invalid_argument(std::string(name) + " is not aligned to 16 bytes");
    }
}

}  // namespace device
