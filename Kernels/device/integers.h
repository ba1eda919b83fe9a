// Integer helpers for sizing grids, on the host.
#pragma once

#include <cstdint>

namespace device {

template <class Value, class By>
constexpr auto divide_up(Value value, By by) {
    return (value + by - 1) / by;
}

// The smallest power of two that is at least `value`.
constexpr int power_of_two_from(std::int64_t value) {
    int power = 1;
    while (power < value) power *= 2;
    return power;
}

}  // namespace device
