// What the C++ sides of bridges make of Rust's numbers, addresses and enums.
#pragma once

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/device/element_type.h"
#include "Kernels/device/require.h"

namespace device {

inline int narrow(const char* name, std::size_t value) {
    require(value <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
            std::string(name) + " is " + std::to_string(value) + "; that does not fit in 31 bits");
    return static_cast<int>(value);
}

template <class T>
T* pointer(std::size_t address) {
    return reinterpret_cast<T*>(address);
}

// `Type` may be another enum with the same three.
template <class Type = ElementType, class Dtype>
Type element_type(Dtype dtype) {
    switch (dtype) {
        case Dtype::F32:
            return Type::kF32;
        case Dtype::F16:
            return Type::kF16;
        case Dtype::Bf16:
            return Type::kBf16;
    }
    throw std::invalid_argument("unknown dtype");
}

}  // namespace device
