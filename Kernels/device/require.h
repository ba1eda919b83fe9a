// Refusal of arguments on the host.
#pragma once

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

}  // namespace device
