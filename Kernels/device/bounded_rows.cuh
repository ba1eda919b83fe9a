// Tensor maps whose boxes end at any row: of the rows of a box, those from `valid` on arrive as
// zeros.
//
// The row dimension stands in such a map three times: coordinates (i, j, k) are row i + j - k, for
// k of kFarRow alone. A box of `valid` rows from `row` on begins at i = kFarRow - valid and j = row
// + valid. Rows past the end are out of bounds in i, which ends at kFarRow; j has the bounds of the
// tensor; and what k adds to the address is less than nothing, modulo 2^64.
//
// A map that begins so many rows before its tensor would do without k. But of a box that is wholly
// out of bounds an H200 reads the address where the map begins.
#pragma once

#include <cuda.h>

namespace device {

constexpr int kFarRow = 1 << 30;

// The sizes of the three dimensions, and their strides for rows of so many bytes.
struct BoundedRows {
    cuuint64_t sizes[3];
    cuuint64_t strides[3];
};

inline BoundedRows bounded_rows(int rows, cuuint64_t row_bytes) {
    constexpr cuuint64_t kFar = kFarRow;
    // kFarRow times 2^34 is 2^64.
    constexpr cuuint64_t kAround = cuuint64_t{1} << 34;
    return {{kFar, static_cast<cuuint64_t>(rows) + 1, kFar + 1},
            {row_bytes, row_bytes, kAround - row_bytes}};
}

}  // namespace device
