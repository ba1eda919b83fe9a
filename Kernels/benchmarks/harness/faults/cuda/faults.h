// The work of the faulty contenders on CUDA: y[row, column] = x[row, column] * w[column], with one
// fault of choice.
#pragma once

#include <cstddef>
#include <cstdint>

namespace harness_faults {

// Enqueues the work. Throws std::runtime_error with CUDA's text.
void launch(std::size_t x, std::size_t w, std::size_t y, std::size_t rows, std::size_t columns,
            std::uint32_t mode, std::size_t stream);

// Enqueues the work, done only where `inputs`, those of the last call, have changed; `answers` are
// the last ones. With `half`, the first half is always computed.
void memoise(std::size_t x, std::size_t w, std::size_t y, std::size_t rows, std::size_t columns,
             std::size_t inputs, std::size_t answers, bool half, std::size_t stream);

// Does the work slowly on a stream of its own, into `scratch`, and enqueues a copy on the given
// one. Either the stream waits for the work, or the host does.
void aside(std::size_t x, std::size_t w, std::size_t y, std::size_t rows, std::size_t columns,
           std::size_t scratch, bool host_waits, std::size_t stream);

// Lets persisting lines take as much of the L2 as the device allows.
void reserve_cache();

// Enqueues the work. With `pin`, all inputs are loaded with evict_last and are persisting.
void pinned(std::size_t x, std::size_t w, std::size_t y, std::size_t rows, std::size_t columns,
            bool pin, std::size_t stream);

// Device memory that is never freed: the process ends with the test.
std::size_t allocate(std::size_t bytes);

// Enqueues a copy within the device.
void copy(std::size_t to, std::size_t from, std::size_t bytes, std::size_t stream);

}  // namespace harness_faults
