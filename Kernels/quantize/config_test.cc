// Every row is covered, by blocks that can be launched.
#include "Kernels/quantize/config.h"

#include <string>

#include "Kernels/device/testing.h"

namespace {

void expect(bool holds, const char* what, std::int64_t packets) {
    if (!holds) testing::expect(false, what + (": " + std::to_string(packets)) + " packets");
}

void check(std::int64_t packets, const quantize::RowConfig& config) {
    const int block = config.threads_per_row * config.rows_per_block;
    const std::int64_t held = std::int64_t{config.threads_per_row} * config.vectors * config.chunks;
    expect(held >= packets, "packets are left out", packets);
    expect(block % 32 == 0 && block <= quantize::kRowMaxThreads, "no block", packets);
    expect(config.rows_per_block == 1 || config.threads_per_row <= 32, "rows over warps", packets);
    const int vectors = config.vectors;
    expect(vectors == 1 || vectors == 2 || vectors == 4 || vectors == 8, "vectors", packets);
    expect(config.chunks == 1 || vectors == quantize::kRowMaxVectors, "chunks", packets);
}

void check(std::int64_t packets) {
    check(packets, quantize::choose_row(packets));
    const quantize::RowConfig warps = quantize::choose_warps(packets);
    check(packets, warps);
    expect(warps.threads_per_row % 32 == 0, "part of a warp", packets);
}

}  // namespace

int main() {
    for (std::int64_t packets = 1; packets < 20'000; ++packets) check(packets);
    for (std::int64_t packets = 1; packets < std::int64_t{1} << 31; packets *= 3) check(packets);
    // 8192 bf16 values: a block of 256 threads with 4 packets each.
    const quantize::RowConfig usual = quantize::choose_row(1024);
    expect(usual.threads_per_row == 256 && usual.vectors == 4, "8192 columns", 1024);
    testing::expect_refused([] { quantize::choose_row(0); }, "packets is 0");
    testing::expect_refused([] { quantize::choose_warps(0); }, "packets is 0");
    return 0;
}
