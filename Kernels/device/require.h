// Argument checks on the host.
#pragma once

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

namespace device {

// `message` names the value and what is accepted.
[[noreturn]] inline void refuse(const std::string& message) {
    throw std::invalid_argument(message);
}

// Throws std::invalid_argument unless it holds. The parts of the message, joined only then, name
// the value and what is accepted.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
    if (holds) return;
    std::ostringstream message;
    (message << ... << parts);
    refuse(message.str());
}

// Kernels move 16 bytes at a time.
inline void require_aligned(const char* name, const void* address) {
    require(address != nullptr && reinterpret_cast<std::uintptr_t>(address) % 16 == 0, name,
            " must be aligned to 16 bytes and not null");
}

}  // namespace device
