// A table of constants as template arguments: one list serves both the choice and the launch.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace device {

template <class Function, std::size_t... kIndices>
bool any_index_of(Function&& function, std::index_sequence<kIndices...>) {
    return (function(std::integral_constant<std::size_t, kIndices>()) || ...);
}

// Calls `function` with the integral constants 0 to kCount - 1 until one call returns true, and
// returns whether one did.
template <std::size_t kCount, class Function>
bool any_index(Function&& function) {
    return any_index_of(function, std::make_index_sequence<kCount>());
}

}  // namespace device
