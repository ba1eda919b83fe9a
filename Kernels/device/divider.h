// Division of indices by a divisor known at launch: a multiplication and a shift.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace device {

// Exact for every dividend below 2^31.
class Divider {
  public:
    explicit Divider(std::int64_t by) : by_(static_cast<std::uint32_t>(by)) {
        if (by < 1 || by > (std::int64_t{1} << 31)) {
            throw std::invalid_argument("divisor is " + std::to_string(by) + "; use 1 to 2^31");
        }
        // ceil(2^(31 + bits) / by) with 2^bits >= by: the error, less than one part in 2^31 of the
        // quotient, never reaches the next integer.
        int bits = 0;
        while ((std::int64_t{1} << bits) < by) ++bits;
        shift_ = bits - 1;
        multiplier_ =
            by == 1
                ? 0
                : static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + bits)) + by_ - 1) / by_);
    }

    __host__ __device__ std::uint32_t divisor() const { return by_; }
    __host__ __device__ std::uint32_t times(std::uint32_t value) const { return value * by_; }
    __host__ __device__ std::uint32_t quotient(std::uint32_t value) const {
        if (multiplier_ == 0) return value;
        return static_cast<std::uint32_t>((std::uint64_t{value} * multiplier_) >> 32) >> shift_;
    }

  private:
    std::uint32_t by_;
    std::uint32_t multiplier_;
    int shift_;
};

}  // namespace device
