#include "Kernels/gemm/config.h"

#include <algorithm>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"

namespace gemm {

using device::divide_up;
using device::require;

std::int64_t Shape::likely_rows() const {
    if (expected_rows > 0) return expected_rows;
    if (layout == Layout::kContiguous) return std::max(1, rows / groups);
    return rows;
}

std::int64_t Shape::row_tiles_at_most(int tile_rows) const {
    const std::int64_t each = divide_up(rows, tile_rows);
    return layout == Layout::kMasked ? each * groups : each;
}

void validate(const Shape& shape) {
    require(shape.rows >= 1, "rows is ", shape.rows, "; give at least 1");
    require(shape.groups >= 1, "groups is ", shape.groups, "; give at least 1");
    require(shape.layout != Layout::kDense || shape.groups == 1, "groups is ", shape.groups,
            "; a dense product has 1");
    require(shape.n >= 8 && shape.n % 8 == 0, "n is ", shape.n, "; multiples of 8 are supported");
    const int piece = 128 / device::bits_of(shape.dtype);
    require(shape.k >= piece && shape.k % piece == 0, "k is ", shape.k, "; multiples of ", piece,
            " are supported");
    require(!(shape.scaled() || shape.block_scaled()) || shape.k % kScaleBlock == 0, "k is ",
            shape.k, "; with FP8 and FP4 operands multiples of 128 are supported");
    require(shape.layout != Layout::kContiguous || shape.rows % kGroupAlignment == 0, "rows is ",
            shape.rows, "; contiguous groups take multiples of 128");
    require(shape.layout == Layout::kDense || shape.row_tiles_at_most(128) <= kMaxRowTiles,
            "rows is ", shape.rows, "; groups take at most ", kMaxRowTiles * 128, " in all");
}

Config choose(const Shape& shape, const Machine& machine) {
    return candidates(shape, machine, 1).front();
}

std::vector<Config> candidates(const Shape& shape, const Machine& machine, std::size_t most) {
    validate(shape);
    require(!shape.block_scaled() || machine.arch == Arch::kBlackwell, "products of ",
            device::name_of(shape.dtype),
            " take tensor cores that apply block scales, those of tcgen05; use fp8_e4m3");
    if (machine.arch == Arch::kHopper) return hopper::candidates(shape, machine, most);
    if (machine.arch == Arch::kBlackwell) return {blackwell::choose(shape, machine)};
    return {portable::choose(shape, machine)};
}

std::string describe(const Config& config) {
    return device::to_string(config.arch) + " " + std::to_string(config.tile_rows) + "x" +
           std::to_string(config.tile_columns) + ", " + std::to_string(config.stages) + " stages";
}

}  // namespace gemm
