#include "Kernels/gemm/config.h"

#include <algorithm>
#include <cstdint>

#include "Kernels/device/require.h"

namespace gemm {
namespace {

using device::require;

// Row tiles that the kernels' list of tiles can hold (tiles.cuh).
constexpr std::int64_t kMaxListedTiles = 3072;
constexpr int kSmallRows = 32;

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Rows that one group is likely to have.
std::int64_t likely_rows(const Shape& shape) {
    if (shape.expected_rows > 0) return shape.expected_rows;
    if (shape.layout == Layout::kContiguous) return shape.rows / shape.groups;
    return shape.rows;
}

std::int64_t row_tiles_at_most(const Shape& shape, int tile_rows) {
    const std::int64_t each = divide_up(shape.rows, tile_rows);
    return shape.layout == Layout::kMasked ? each * shape.groups : each;
}

Config portable(const Shape& shape, const Machine& machine) {
    Config config = {};
    config.kernel = Kernel::kPortable;
    const bool small =
        likely_rows(shape) <= 2 * kSmallRows &&
        (shape.layout == Layout::kDense || row_tiles_at_most(shape, kSmallRows) <= kMaxListedTiles);
    config.tile_rows = small ? kSmallRows : 128;
    config.tile_columns = small ? 64 : 128;
    config.stages = small ? 6 : 4;
    // Blocks of a multiprocessor: as many as shared memory holds.
    const int each = small ? 3 : 1;
    const std::int64_t tiles =
        row_tiles_at_most(shape, config.tile_rows) * divide_up(shape.n, config.tile_columns);
    config.blocks = static_cast<int>(
        std::min<std::int64_t>(tiles, std::int64_t{each} * machine.multiprocessors));
    return config;
}

// Tiles of Hopper's kernel (hopper_launch.cuh has the same list).
struct HopperTile {
    int rows;
    int columns;
    int stages;
    int blocks;   // on one multiprocessor
    bool scaled;  // exists for FP8 operands
};

constexpr HopperTile kHopperTiles[] = {
    {128, 256, 4, 1, false}, {128, 128, 6, 1, true}, {64, 128, 4, 2, true},
    {32, 128, 4, 2, true},   {32, 64, 7, 2, true},   {32, 32, 20, 1, true},
};

bool exists(const HopperTile& tile, const Shape& shape) {
    if (shape.type == ElementType::kFp8 && !tile.scaled) return false;
    return shape.layout == Layout::kDense || row_tiles_at_most(shape, tile.rows) <= kMaxListedTiles;
}

// Cycles that a multiprocessor spends on its tiles, up to a factor that all have in common: the
// larger of the tensor cores' work and of bringing the operands from the L2.
double hopper_cost(const Shape& shape, const Machine& machine, const HopperTile& tile) {
    constexpr double kProductsPerCycle = 32;  // 64-row instructions, per 128 bytes of k
    constexpr double kCyclesPerRow = 2.56;    // 128 bytes at 50 bytes a cycle
    constexpr double kStepsOfEnds = 4;        // start and end of a tile, in steps of k
    const std::int64_t groups = shape.layout == Layout::kDense ? 1 : shape.groups;
    const std::int64_t tiles =
        groups * divide_up(likely_rows(shape), tile.rows) * divide_up(shape.n, tile.columns);
    const double products = std::max(64, tile.rows) * tile.columns / kProductsPerCycle;
    const double copies = (tile.rows + tile.columns) * kCyclesPerRow;
    const double steps = static_cast<double>(shape.k) * element_bytes(shape.type) / 128;
    return static_cast<double>(divide_up(tiles, machine.multiprocessors)) *
           std::max(products, copies) * (steps + kStepsOfEnds);
}

Config hopper(const Shape& shape, const Machine& machine) {
    const HopperTile* best = nullptr;
    double least = 0;
    for (const HopperTile& tile : kHopperTiles) {
        if (!exists(tile, shape)) continue;
        const double cost = hopper_cost(shape, machine, tile);
        if (best == nullptr || cost < least) {
            best = &tile;
            least = cost;
        }
    }
    Config config = {};
    config.kernel = Kernel::kHopper;
    config.tile_rows = best->rows;
    config.tile_columns = best->columns;
    config.stages = best->stages;
    const std::int64_t tiles =
        row_tiles_at_most(shape, best->rows) * divide_up(shape.n, best->columns);
    const std::int64_t most = std::int64_t{best->blocks} * machine.multiprocessors;
    config.blocks = static_cast<int>(std::min(tiles, most));
    return config;
}

}  // namespace

void validate(const Shape& shape) {
    const auto text = [](std::int64_t value) { return std::to_string(value); };
    require(shape.rows >= 1, "rows is " + text(shape.rows) + "; give at least 1");
    require(shape.groups >= 1, "groups is " + text(shape.groups) + "; give at least 1");
    require(shape.layout != Layout::kDense || shape.groups == 1,
            "groups is " + text(shape.groups) + "; a dense product has 1");
    require(shape.n >= 8 && shape.n % 8 == 0,
            "n is " + text(shape.n) + "; multiples of 8 are supported");
    const int piece = 16 / element_bytes(shape.type);
    require(shape.k >= piece && shape.k % piece == 0,
            "k is " + text(shape.k) + "; multiples of " + text(piece) + " are supported");
    require(shape.type != ElementType::kFp8 || shape.k % kScaleBlock == 0,
            "k is " + text(shape.k) + "; with FP8 operands multiples of 128 are supported");
    require(shape.layout != Layout::kContiguous || shape.rows % kGroupAlignment == 0,
            "rows is " + text(shape.rows) + "; contiguous groups take multiples of 128");
    require(shape.layout == Layout::kDense || row_tiles_at_most(shape, 128) <= kMaxListedTiles,
            "rows is " + text(shape.rows) + "; groups take at most " + text(kMaxListedTiles * 128) +
                " in all");
}

Config choose(const Shape& shape, const Machine& machine, Kernel kernel) {
    validate(shape);
    return kernel == Kernel::kHopper ? hopper(shape, machine) : portable(shape, machine);
}

std::string to_string(const Config& config) {
    return std::to_string(config.tile_rows) + "x" + std::to_string(config.tile_columns) + ", " +
           std::to_string(config.stages) + " stages";
}

}  // namespace gemm
