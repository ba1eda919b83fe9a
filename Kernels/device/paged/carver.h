// Carves one allocation into the sections of a workspace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace device {

// Sections start at multiples of 256 bytes. With a null base it only counts, so that the same code
// computes how much to allocate and then where the sections are. Tables, which the host fills, come
// first; then counters, which are zero whenever no kernel runs.
class Carver {
  public:
    explicit Carver(void* start = nullptr) : start_(reinterpret_cast<std::uintptr_t>(start)) {}

    template <class T>
    T* take(std::size_t count) {
        constexpr std::size_t kAlignment = 256;
        const std::uintptr_t part = start_ + bytes_;
        bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
        return reinterpret_cast<T*>(part);
    }

    void end_tables() { tables_ = counters_ = bytes_; }
    void end_counters() { counters_ = bytes_; }

    std::size_t bytes() const { return bytes_; }
    std::size_t tables() const { return tables_; }
    // The end of the counters, which start where tables end.
    std::size_t counters() const { return counters_; }

  private:
    std::uintptr_t start_;
    std::size_t bytes_ = 0;
    std::size_t tables_ = 0;
    std::size_t counters_ = 0;
};

}  // namespace device
