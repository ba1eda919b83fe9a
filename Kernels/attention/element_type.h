// The types that queries, keys, values and outputs may have.
#pragma once

namespace attention {

enum class ElementType { kF16, kBf16 };

}  // namespace attention
