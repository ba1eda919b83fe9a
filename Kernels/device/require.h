// Refusal of arguments on the host.
#pragma once

#include <stdexcept>
#include <string>

namespace device {

// `message` names the value and what would be taken.
inline void require(bool holds, const std::string& message) {
    if (!holds) throw std::invalid_argument(message);
}

}  // namespace device
