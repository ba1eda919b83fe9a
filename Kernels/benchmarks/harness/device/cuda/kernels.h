// The harness's own work on the GPU, as plain host functions for the bridge.
//
// Addresses are device addresses and streams are CUstream values, both as integers. Functions throw
// std::runtime_error with CUDA's error name and text. All only enqueue. `scratch` is device memory
// of scratch_bytes(); results are pinned host memory, mapped into the device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace harness_device {

size_t scratch_bytes();

// Writes `elements` seeded values; bit-identical to tensor::fill_into.
void fill_uniform(size_t address, uint64_t elements, uint32_t dtype, uint64_t key, float low,
                  float high, size_t stream);
void fill_index(size_t address, uint64_t elements, uint32_t dtype, uint64_t key, uint32_t below,
                size_t stream);
// The tables are device memory: ranges as pairs of floats, levels as bytes, factors as floats; the
// last two may be null.
void fill_shaped(size_t address, uint64_t elements, uint32_t dtype, uint64_t key, size_t ranges,
                 size_t levels, size_t factors, uint64_t outer, uint64_t inner, uint64_t run,
                 uint64_t columns, size_t stream);

// Offset of the first byte that is not `value`, or one beyond the end if there is none.
void first_byte_not(size_t address, uint64_t bytes, uint8_t value, size_t scratch, size_t result,
                    size_t stream);

// Memory to be looked at or copied, and where to, counted in bytes.
struct Piece {
    uint64_t from;
    uint64_t bytes;
    uint64_t to;
};

// The same for each of some short pieces at once. The list is pinned host memory, too.
void first_bytes_not(size_t pieces, uint32_t count, uint8_t value, size_t results, size_t stream);

// As crate device reads it.
struct NonFinite {
    uint64_t count;
    uint64_t first;  // undefined if there is none
};

// Counts NaN and infinities among `elements` floats.
void non_finite(size_t address, uint64_t elements, uint32_t dtype, size_t scratch, size_t result,
                size_t stream);

// The sum of crate device's checksum, before its last step.
void checksum_sum(size_t address, uint64_t bytes, size_t scratch, size_t result, size_t stream);

// Copies some pieces of device memory to `result`. The list is pinned host memory, too.
void gather(size_t pieces, uint32_t count, size_t result, size_t stream);

// As crate device reads it.
struct Comparison {
    double max_abs;
    double sum_squared_error;
    double sum_squared_reference;
    uint64_t non_finite;
    uint64_t over_limit;
    uint64_t first_over;  // in its tile; undefined if nothing is over the limit
};

// Element-wise comparison, one result per tile of `step` elements; sums have a fixed order, so
// repeats agree to the last bit.
void compare(size_t actual, size_t reference, uint64_t elements, uint64_t step, uint32_t dtype,
             double absolute, double relative, size_t scratch, size_t results, size_t stream);

// Takes back what work may have asked of the L2: persisting lines, a part reserved for them, and a
// window on the stream whose accesses persist. Waits for nothing; the device should be idle.
void release_l2(size_t stream);

// Replaces the contents of the L2, whatever their priority: writes the first half of the buffer,
// then reads the other half, so that no dirty line is left to be written back inside the timed
// region.
void flush_l2(size_t buffer, uint64_t bytes, size_t scratch, size_t stream);

// Keeps the stream busy until *flag is nonzero or `limit_ns` have passed, then sets *outcome to
// kReleased or kTimedOut. Both words are pinned host memory, mapped into the device.
constexpr uint32_t kReleased = 1;
constexpr uint32_t kTimedOut = 2;
void hold(size_t flag, size_t outcome, uint64_t limit_ns, size_t stream);

// Clock stamps around the timed work. The tail waits until `window_ns` have passed since the head,
// so that the quotient is exact however short the work was, then writes {cycles, nanoseconds}
// between the two to `result` (pinned host memory), or nothing if no multiprocessor ran both.
// `stamps` is device memory of stamp_bytes(), initially zero; `epoch` counts up from 1.
size_t stamp_bytes();
void stamp_head(size_t stamps, uint32_t multiprocessors, uint64_t epoch, size_t stream);
void stamp_tail(size_t stamps, uint32_t multiprocessors, uint64_t epoch, uint64_t window_ns,
                size_t result, size_t stream);

}  // namespace harness_device

// Work under measurement for the harness's own tests, in a separate namespace because the tracer
// ignores the harness's kernels.
namespace harness_work {

// One thread that runs for `duration_ns` by the device's own timer.
void spin(uint64_t duration_ns, size_t stream);

}  // namespace harness_work
