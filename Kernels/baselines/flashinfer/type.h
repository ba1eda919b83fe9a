#pragma once

#include <cstdint>

namespace fi {

enum class Type : std::uint8_t { kF16, kBf16 };

}  // namespace fi
