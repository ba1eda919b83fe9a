// Every shape gets a config that covers it, bad shapes are refused by name, and the shapes that
// matter get the intended tile.
#include "Kernels/gemm/config.h"

#include <string>

#include "Kernels/device/testing.h"

namespace {

using gemm::choose;
using gemm::Config;
using gemm::ElementType;
using gemm::Kernel;
using gemm::Layout;
using gemm::Shape;
using testing::expect;

constexpr gemm::Machine kMachine = {132};

void every_shape_has_a_grid() {
    for (const ElementType type : {ElementType::kBf16, ElementType::kF16, ElementType::kFp8}) {
        for (const int rows : {1, 8, 127, 128, 4096, 16384, 262144}) {
            for (const int n : {8, 272, 4096, 57344}) {
                for (const int k : {128, 512, 7168, 28672}) {
                    const Shape shape = {rows, n, k, 1, type, Layout::kDense, 0};
                    const Config config = choose(shape, kMachine, Kernel::kPortable);
                    expect(config.blocks >= 1 && config.blocks <= 3 * 132, "blocks in range");
                    expect(config.stages >= 3, "enough stages to hide memory");
                }
            }
        }
    }
}

void few_rows_get_small_tiles() {
    const auto rows_of = [](Shape shape) {
        return choose(shape, kMachine, Kernel::kPortable).tile_rows;
    };
    expect(rows_of({16, 4096, 7168, 1, ElementType::kBf16, Layout::kDense, 0}) == 32, "decode");
    expect(rows_of({4096, 4096, 7168, 1, ElementType::kBf16, Layout::kDense, 0}) == 128, "prefill");
    const Shape decode = {8 * 128, 4096, 7168, 8, ElementType::kFp8, Layout::kContiguous, 16};
    expect(rows_of(decode) == 32, "few rows a group");
    const Shape unknown = {8 * 128, 4096, 7168, 8, ElementType::kFp8, Layout::kContiguous, 0};
    expect(rows_of(unknown) == 128, "128 rows a group unless one knows better");
}

void hopper_tiles_fit_the_work() {
    const auto tile = [](Shape shape) {
        const Config config = choose(shape, kMachine, Kernel::kHopper);
        expect(config.kernel == Kernel::kHopper && config.blocks >= 1, "a grid");
        return std::to_string(config.tile_rows) + "x" + std::to_string(config.tile_columns);
    };
    const auto is = [&](Shape shape, const char* expected) {
        expect(tile(shape) == expected, tile(shape) + " instead of " + expected);
    };
    is({8192, 8192, 8192, 1, ElementType::kBf16, Layout::kDense, 0}, "128x256");
    is({8192, 8192, 8192, 1, ElementType::kFp8, Layout::kDense, 0}, "128x128");
    is({16, 4096, 7168, 1, ElementType::kBf16, Layout::kDense, 0}, "32x32");
    is({8 * 128, 4096, 7168, 8, ElementType::kFp8, Layout::kContiguous, 16}, "32x128");
    is({4 * 8192, 4096, 7168, 4, ElementType::kBf16, Layout::kContiguous, 8192}, "128x256");
    is({1024, 4096, 7168, 64, ElementType::kFp8, Layout::kMasked, 32}, "32x128");
}

void bad_shapes_are_named() {
    const auto refused = [](Shape shape, const char* word) {
        testing::expect_refused([&] { gemm::validate(shape); }, word);
    };
    refused({0, 8, 128, 1, ElementType::kBf16, Layout::kDense, 0}, "rows");
    refused({1, 4, 128, 1, ElementType::kBf16, Layout::kDense, 0}, "n is 4");
    refused({1, 8, 100, 1, ElementType::kBf16, Layout::kDense, 0}, "k is 100");
    refused({1, 8, 64, 1, ElementType::kFp8, Layout::kDense, 0}, "multiples of 128");
    refused({100, 8, 128, 2, ElementType::kFp8, Layout::kContiguous, 0}, "multiples of 128");
    refused({100, 8, 128, 2, ElementType::kBf16, Layout::kDense, 0}, "dense product");
    refused({8192, 8, 128, 128, ElementType::kBf16, Layout::kMasked, 0}, "at most");
}

}  // namespace

int main() {
    every_shape_has_a_grid();
    few_rows_get_small_tiles();
    hopper_tiles_fit_the_work();
    bad_shapes_are_named();
    std::puts("passed");
}
