// Refusal of arguments on the host.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace device {

// `message` names the value and what would be taken.
[[noreturn]] inline void refuse(const std::string& message) {
    throw std::invalid_argument(message);
}

// The message is built whether or not it is needed: in loops, test first and call refuse().
inline void require(bool holds, const std::string& message) {
    if (!holds) refuse(message);
}

// Kernels move 16 bytes at a time.
inline void require_aligned(const char* name, const void* address) {
    if (address == nullptr || reinterpret_cast<std::uintptr_t>(address) % 16 != 0) {
        refuse(std::string(name) + " is null or not aligned to 16 bytes");
    }
}

}  // namespace device
