// The types that activations may have.
#pragma once

namespace norms {

enum class ElementType { kF32, kF16, kBf16 };

constexpr int element_bytes(ElementType type) { return type == ElementType::kF32 ? 4 : 2; }

}  // namespace norms
