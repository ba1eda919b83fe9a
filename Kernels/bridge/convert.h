// Converts Rust's numbers and addresses for the C++ sides of bridges.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

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

}  // namespace device
