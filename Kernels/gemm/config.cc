#include "Kernels/gemm/config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

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
    if (shape.layout == Layout::kContiguous) return std::max(1, shape.rows / shape.groups);
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
    config.split = 1;
    // Blocks of a multiprocessor: as many as shared memory holds.
    const int each = small ? 3 : 1;
    const std::int64_t tiles =
        row_tiles_at_most(shape, config.tile_rows) * divide_up(shape.n, config.tile_columns);
    config.blocks = static_cast<int>(
        std::min<std::int64_t>(tiles, std::int64_t{each} * machine.multiprocessors));
    return config;
}

// Tiles of Hopper's kernel (hopper_launch.cuh has the same list), and what each is for.
enum class Use { kNever, kDense, kGroups, kAlways };

struct HopperTile {
    int rows;
    int columns;
    int stages;
    int blocks;  // on one multiprocessor
    Use halves;  // 16-bit operands
    Use scaled;  // FP8 operands
};

constexpr HopperTile kHopperTiles[] = {
    {128, 256, 3, 1, Use::kAlways, Use::kNever}, {128, 192, 4, 1, Use::kAlways, Use::kAlways},
    {128, 160, 4, 1, Use::kAlways, Use::kNever}, {128, 128, 5, 1, Use::kAlways, Use::kAlways},
    {128, 64, 8, 1, Use::kNever, Use::kDense},   {64, 128, 8, 1, Use::kDense, Use::kNever},
    {64, 128, 4, 2, Use::kGroups, Use::kAlways}, {64, 64, 12, 1, Use::kDense, Use::kNever},
    {64, 64, 6, 2, Use::kNever, Use::kDense},    {32, 128, 4, 2, Use::kAlways, Use::kAlways},
    {32, 64, 7, 2, Use::kAlways, Use::kAlways},
};

bool exists(const HopperTile& tile, const Shape& shape) {
    const Use use = shape.type == ElementType::kFp8 ? tile.scaled : tile.halves;
    if (shape.layout == Layout::kDense) return use == Use::kDense || use == Use::kAlways;
    if (use != Use::kGroups && use != Use::kAlways) return false;
    return row_tiles_at_most(shape, tile.rows) <= kMaxListedTiles;
}

// No tile is half empty, and low ones are for few rows.
bool suits(const HopperTile& tile, const Shape& shape) {
    const std::int64_t rows = likely_rows(shape);
    if (tile.rows == kSmallRows) return rows <= 64;
    // Some masked groups have more.
    const std::int64_t most = shape.layout == Layout::kMasked ? rows * 13 / 10 : rows;
    return tile.rows < 2 * most && (tile.rows > 64 || rows <= 1024);
}

constexpr int kMaxSplit = 4;

std::int64_t likely_tiles(const Shape& shape, const HopperTile& tile) {
    const std::int64_t groups = shape.layout == Layout::kDense ? 1 : shape.groups;
    const std::int64_t rows = likely_rows(shape);
    const std::int64_t wide = divide_up(shape.n, tile.columns);
    if (shape.layout != Layout::kMasked) return groups * divide_up(rows, tile.rows) * wide;
    // Rows of masked groups differ: by three tenths in both directions, say.
    std::int64_t of_seven = 0;
    for (int tenths = 7; tenths <= 13; ++tenths) {
        of_seven += divide_up(rows * tenths, std::int64_t{10} * tile.rows);
    }
    return divide_up(groups * of_seven, 7) * wide;
}

int steps_of(const Shape& shape) {
    return static_cast<int>(divide_up(std::int64_t{shape.k} * element_bytes(shape.type), 128));
}

bool can_split(const Shape& shape, const Machine& machine, const HopperTile& tile, int split) {
    if (split == 1) return true;
    // Fewer are done before the blocks have met.
    constexpr int kLeastSteps = 8;
    if (shape.layout == Layout::kMasked || steps_of(shape) < kLeastSteps * split) return false;
    // Every tile that there may be gets its blocks; more than this would be empty ones.
    constexpr std::int64_t kMostBlocks = 1024;
    const std::int64_t at_most =
        row_tiles_at_most(shape, tile.rows) * divide_up(shape.n, tile.columns) * split;
    if (at_most > kMostBlocks) return false;
    // All run at once: clusters of two go everywhere, larger ones leave multiprocessors over.
    const std::int64_t blocks = likely_tiles(shape, tile) * split;
    return blocks <= machine.multiprocessors * (split == 2 ? 100 : 90) / 100;
}

// Whether the kernel's consumers take whole tiles in turn (hopper_traits.cuh).
bool alternates(const Shape& shape, const HopperTile& tile) {
    return shape.type != ElementType::kFp8 && tile.rows == 128 && tile.columns <= 192;
}

// What a step costs more than its products where sums are scaled and added: a block that is alone
// or whose consumers have one set of sums cannot hide all of it.
double promotion(const HopperTile& tile, std::int64_t together) {
    if (tile.rows < 128) return together > 1 ? 1.06 : 1.56;
    return tile.columns == 64 ? 1.08 : tile.columns == 128 ? 1.05 : 1.0;
}

// Cycles until all is done, up to a constant that all have in common. The numbers fit what the
// tiles took on an H200, for the suites' shapes.
double hopper_cost(const Shape& shape, const Machine& machine, const HopperTile& tile, int split) {
    constexpr double kProductsPerCycle = 32;  // 64-row instructions, per 128 bytes of k
    constexpr double kCyclesPerRow = 1.7;     // to bring 128 bytes from the L2
    constexpr double kPowerOfCopies = 0.1;
    constexpr double kLatency = 1810;        // of a stage, from empty to full
    constexpr double kEnds = 470;            // start and end of a tile
    constexpr double kEndOfElement = 0.136;  // writing it
    constexpr double kHandingOver = 2000;    // from a tile to that of the other consumer
    constexpr double kCollecting = 350;      // sums of k that is shared out
    constexpr double kCollectingElement = 0.12;
    constexpr double kMemoryPerCycle = 13.4;  // bytes, of one multiprocessor
    const std::int64_t tiles = likely_tiles(shape, tile);
    const std::int64_t each = divide_up(tiles * split, machine.multiprocessors);
    const std::int64_t together = std::min<std::int64_t>(tile.blocks, each);
    double products = std::max(64, tile.rows) * tile.columns / kProductsPerCycle;
    if (shape.type == ElementType::kFp8) products *= promotion(tile, together);
    const double rows = std::min<double>(tile.rows, likely_rows(shape));
    const double copies = (rows + tile.columns) * kCyclesPerRow;
    const double ring = kLatency / static_cast<double>(tile.stages * together);
    const double steps = static_cast<double>(steps_of(shape)) / split;
    const double ends = kEnds + kEndOfElement * tile.rows * tile.columns;
    // Copies cost power, and with it clock, where they cost no time.
    const double step = std::max({products, copies, ring}) + kPowerOfCopies * copies;
    // Where consumers alternate, the other one's tile hides most of the end.
    const double all_ends = alternates(shape, tile)
                                ? ends + static_cast<double>(each - 1) * kHandingOver
                                : static_cast<double>(divide_up(each, tile.blocks)) * ends;
    // Large stages take long to come from memory the first time; with FP8, and for lower tiles, the
    // fit has that in the other numbers.
    const bool large = shape.type != ElementType::kFp8 && tile.rows == 128;
    const double first = large ? (rows + tile.columns) * 128 / kMemoryPerCycle : 0;
    const double work = first + static_cast<double>(each) * steps * step + all_ends;
    const std::int64_t groups = shape.layout == Layout::kDense ? 1 : shape.groups;
    const double memory = static_cast<double>(groups * shape.n) * steps_of(shape) * 128 /
                          (kMemoryPerCycle * machine.multiprocessors);
    // They overlap, but where they take equally long not wholly.
    const double both = std::pow(std::pow(work, 6) + std::pow(memory, 6), 1.0 / 6);
    const double collecting = kCollecting + kCollectingElement * tile.rows * tile.columns;
    return both + (split > 1 ? collecting : 0);
}

Config hopper(const Shape& shape, const Machine& machine) {
    // The list of tiles may be too short for those that suit; there is always one that exists.
    const auto suit_and_exist = [&](const HopperTile& tile) {
        return exists(tile, shape) && suits(tile, shape);
    };
    const bool choosy =
        std::any_of(std::begin(kHopperTiles), std::end(kHopperTiles), suit_and_exist);
    const HopperTile* best = nullptr;
    int split = 1;
    double least = 0;
    for (const HopperTile& tile : kHopperTiles) {
        if (!exists(tile, shape) || (choosy && !suits(tile, shape))) continue;
        for (int parts = 1; parts <= kMaxSplit; ++parts) {
            if (!can_split(shape, machine, tile, parts)) continue;
            const double cost = hopper_cost(shape, machine, tile, parts);
            if (best == nullptr || cost < least) {
                best = &tile;
                split = parts;
                least = cost;
            }
        }
    }
    Config config = {};
    config.kernel = Kernel::kHopper;
    config.tile_rows = best->rows;
    config.tile_columns = best->columns;
    config.stages = best->stages;
    config.split = split;
    const std::int64_t tiles =
        row_tiles_at_most(shape, best->rows) * divide_up(shape.n, best->columns);
    const std::int64_t most = std::int64_t{best->blocks} * machine.multiprocessors;
    // A cluster that shares out k has one tile.
    config.blocks = static_cast<int>(split > 1 ? tiles * split : std::min(tiles, most));
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
