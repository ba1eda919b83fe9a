// The tile heuristic: a cost model of each tile; the cheapest wins.
#include "Kernels/gemm/config.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"
#include "Kernels/gemm/hopper/tiles.h"

namespace gemm::hopper {
namespace {

using device::divide_up;

// Dense products of 16-bit operands have a model of their own, below.
bool dense_halves(const Shape& shape) { return shape.layout == Layout::kDense && !shape.scaled(); }

bool exists(const TileShape& tile, const Shape& shape, const Machine& machine) {
    if (!is_used(tile, shape.scaled(), shape.layout)) return false;
    if (tile.pairs() && machine.multiprocessors < 2) return false;
    return shape.layout == Layout::kDense || shape.row_tiles_at_most(tile.rows) <= kMaxRowTiles;
}

// No tile is half empty, and low ones are for few rows.
bool suits(const TileShape& tile, const Shape& shape) {
    const std::int64_t rows = shape.likely_rows();
    // What the model was fitted to.
    if (tile.transposed) return rows <= 4 * tile.columns && tile.columns < 2 * (rows + 15);
    if (dense_halves(shape)) return true;
    if (tile.rows < 64) return rows <= 2 * tile.rows;
    // With many rows, tall narrow tiles would read more than L2 gives.
    if (tile.rows == 128 && tile.columns == 96 && rows > 1536) return false;
    // Some masked groups have more rows.
    const std::int64_t most = shape.layout == Layout::kMasked ? rows * 13 / 10 : rows;
    return tile.rows < 2 * most && (tile.rows > 64 || rows <= 1024);
}

constexpr int kMaxSplit = 8;

std::int64_t likely_tiles(const Shape& shape, const TileShape& tile) {
    if (tile.transposed) return divide_up(shape.n, tile.rows) * divide_up(shape.rows, tile.columns);
    if (tile.pairs()) {
        return 2 * divide_up(shape.rows, tile.down() * tile.rows) *
               divide_up(shape.n, tile.across() * tile.columns);
    }
    const std::int64_t groups = shape.layout == Layout::kDense ? 1 : shape.groups;
    const std::int64_t rows = shape.likely_rows();
    const std::int64_t wide = divide_up(shape.n, tile.columns);
    if (shape.layout != Layout::kMasked) return groups * divide_up(rows, tile.rows) * wide;
    // Masked groups vary in rows: say by 30 % in both directions.
    std::int64_t of_seven = 0;
    for (int tenths = 7; tenths <= 13; ++tenths) {
        of_seven += divide_up(rows * tenths, std::int64_t{10} * tile.rows);
    }
    return divide_up(groups * of_seven, 7) * wide;
}

int steps_of(const Shape& shape) {
    return static_cast<int>(divide_up(std::int64_t{shape.k} * device::bytes_of(shape.dtype), 128));
}

// Clusters of so many blocks that an H200 surely runs at once: each is within one of its groups of
// SMs, which have 16 or 18.
constexpr int kClusters[kMaxSplit] = {132, 64, 38, 29, 21, 16, 14, 14};

bool can_split(const Shape& shape, const Machine& machine, const TileShape& tile, int split) {
    if (split == 1) return true;
    if (tile.pairs()) return false;
    if (dense_halves(shape)) {
        constexpr int kLeastSteps = 6;
        const std::int64_t most =
            std::int64_t{tile.blocks} * kClusters[split - 1] * machine.multiprocessors / 132;
        return likely_tiles(shape, tile) <= most && steps_of(shape) >= kLeastSteps * split;
    }
    if (split > 4) return false;
    // Fewer are done before the blocks have synchronised.
    constexpr int kLeastSteps = 8;
    if (shape.layout == Layout::kMasked || steps_of(shape) < kLeastSteps * split) return false;
    // Every potential tile gets its blocks; any beyond that would be empty.
    constexpr std::int64_t kMostBlocks = 1024;
    const std::int64_t at_most =
        shape.row_tiles_at_most(tile.rows) * divide_up(shape.n, tile.columns) * split;
    if (at_most > kMostBlocks) return false;
    // All are resident at once: clusters of two fit everywhere, larger ones leave SMs idle.
    const std::int64_t blocks = likely_tiles(shape, tile) * split;
    return blocks <= machine.multiprocessors * (split == 2 ? 100 : 90) / 100;
}

// Whether the kernel's consumers ping-pong over whole tiles (traits.cuh).
bool alternates(const Shape& shape, const TileShape& tile) {
    return !shape.scaled() && tile.rows == 128 && tile.columns <= 192;
}

// Whether rows of k start within the 32 bytes that L2 hands out: the 128 bytes of a stage then take
// five such pieces.
bool are_lines_astray(const Shape& shape) { return shape.k_bytes() % 32 != 0; }

// Cycles to completion of a dense product of 16-bit operands. The numbers were fitted to times of
// 235 random shapes and the suites' on an H200.
double dense_cost_of(const Shape& shape, const Machine& machine, const TileShape& tile, int split) {
    constexpr double kProductsPerCycle = 32;
    constexpr double kTogether = 1.05;       // consumers that end together leave tensor cores idle
    constexpr double kCyclesPerRow = 1.27;   // to bring 128 bytes
    constexpr double kLatency = 1420;        // of a stage, from empty to full
    constexpr double kStart = 6300;          // before the first products, and after the last
    constexpr double kEnds = 640;            // prologue and epilogue of a tile
    constexpr double kEndOfElement = 0.098;  // storing it
    constexpr double kHandingOver = 500;     // from one consumer's tile to the other's
    constexpr double kCollecting = 260;      // split-K sums, per block
    constexpr double kCollectingElement = 0.1;
    constexpr double kMemoryPerCycle = 17.9;  // bytes per SM
    constexpr double kCachePerCycle = 76;
    // What work, memory and L2 take overlaps, but none hides the others.
    constexpr double kOverlap = 1.93;
    // Where lines are astray, L2 gives more, and later.
    constexpr double kAstrayRow = 2.2;
    constexpr double kAstrayStage = 2.8;
    constexpr double kPairStart = 1000;
    // Where they are not, pairs gain little, and wait for each other.
    constexpr double kPairing = 1.1;
    // Split-K of tall tiles costs more than all that: of two consumers one has no tile.
    constexpr double kSplitting = 1.08;
    const std::int64_t tiles = likely_tiles(shape, tile);
    const std::int64_t each = divide_up(tiles * split, machine.multiprocessors);
    const std::int64_t together = std::min<std::int64_t>(tile.blocks, each);
    // Instructions have 64 rows.
    const double elements = std::max(64, tile.rows) * tile.columns;
    const double all_steps = steps_of(shape);
    const int columns = std::min(tile.columns, tile.transposed ? shape.rows : shape.n);
    const bool cooperates = tile.rows == 128 && !alternates(shape, tile);
    const double products = elements / kProductsPerCycle * (cooperates ? kTogether : 1);
    // A pair loads half of an operand.
    const double part_of_rows = 1.0 / tile.across(), part_of_columns = 1.0 / tile.down();
    const double loaded = part_of_rows * tile.rows + part_of_columns * columns;
    const bool astray = are_lines_astray(shape);
    const double step = std::max({products, loaded * kCyclesPerRow * (astray ? kAstrayRow : 1),
                                  kLatency / static_cast<double>(tile.stages * together)});
    const double ends = kEnds + kEndOfElement * elements;
    const double all_ends = alternates(shape, tile)
                                ? ends + static_cast<double>(each - 1) * kHandingOver
                                : static_cast<double>(divide_up(each, tile.blocks)) * ends;
    const double start = kStart + (tile.pairs() ? kPairStart : 0);
    const double work = start + static_cast<double>(each) * all_steps / split * step + all_ends;
    const double m = shape.rows, n = shape.n, k = shape.k;
    const double memory = 2 * (m * k + n * k + m * n) / (kMemoryPerCycle * machine.multiprocessors);
    const double stage = 128 * (part_of_rows * tile.rows + part_of_columns * tile.columns);
    const double cache = static_cast<double>(tiles) * all_steps * stage *
                         (astray ? kAstrayStage : 1) / (kCachePerCycle * machine.multiprocessors);
    const double sum =
        std::pow(work, kOverlap) + std::pow(memory, kOverlap) + std::pow(cache, kOverlap);
    const double collecting = kCollecting * split + kCollectingElement * elements;
    const double whole = std::pow(sum, 1 / kOverlap);
    if (split == 1) return whole * (tile.pairs() && !astray ? kPairing : 1);
    return (whole + collecting) * (tile.transposed ? 1 : kSplitting);
}

// Extra cost per step of scaling and promoting sums: a block that is alone on its SM, or whose
// consumers have one set of sums, cannot hide all of it.
double promotion(const TileShape& tile, std::int64_t together) {
    if (tile.rows < 128) return together > 1 ? 1.06 : 1.56;
    // Lines of 160 columns are stored in smaller boxes, too.
    if (tile.columns == 64 || tile.columns == 160) return 1.08;
    return tile.columns == 128 ? 1.05 : 1.0;
}

// The same for FP8 operands and for groups, up to a common constant. The numbers were fitted to
// times of the suites' shapes on an H200.
double cost_of(const Shape& shape, const Machine& machine, const TileShape& tile, int split) {
    constexpr double kProductsPerCycle = 32;  // 64-row instructions, per 128 bytes of k
    constexpr double kCyclesPerRow = 1.7;     // to bring 128 bytes from L2
    constexpr double kPowerOfCopies = 0.1;
    constexpr double kPromoting = 250;       // a step of FP8, however small
    constexpr double kLatency = 1810;        // of a stage, from empty to full
    constexpr double kEnds = 470;            // prologue and epilogue of a tile
    constexpr double kEndOfElement = 0.136;  // storing it
    constexpr double kHandingOver = 2000;    // from one consumer's tile to the other's
    constexpr double kCollecting = 350;      // split-K sums
    constexpr double kCollectingElement = 0.12;
    constexpr double kMemoryPerCycle = 13.4;  // bytes per SM
    const std::int64_t tiles = likely_tiles(shape, tile);
    const std::int64_t each = divide_up(tiles * split, machine.multiprocessors);
    const std::int64_t together = std::min<std::int64_t>(tile.blocks, each);
    double products = std::max(64, tile.rows) * tile.columns / kProductsPerCycle;
    if (shape.scaled()) products = std::max(kPromoting, products * promotion(tile, together));
    const double rows = std::min<double>(tile.rows, shape.likely_rows());
    const double copies = (rows + tile.columns) * kCyclesPerRow;
    const double ring = kLatency / static_cast<double>(tile.stages * together);
    const double steps = static_cast<double>(steps_of(shape)) / split;
    const double ends = kEnds + kEndOfElement * tile.rows * tile.columns;
    // Even copies that cost no time cost power, and with it clock.
    const double step = std::max({products, copies, ring}) + kPowerOfCopies * copies;
    // If consumers ping-pong, the other one's tile hides most of the epilogue.
    const double all_ends = alternates(shape, tile)
                                ? ends + static_cast<double>(each - 1) * kHandingOver
                                : static_cast<double>(divide_up(each, tile.blocks)) * ends;
    // Large stages take long to arrive from memory the first time; for FP8 and for lower tiles, the
    // other fitted numbers cover that.
    const bool large = !shape.scaled() && tile.rows == 128;
    const double first = large ? (rows + tile.columns) * 128 / kMemoryPerCycle : 0;
    const double work = first + static_cast<double>(each) * steps * step + all_ends;
    const std::int64_t groups = shape.layout == Layout::kDense ? 1 : shape.groups;
    const double memory = static_cast<double>(groups * shape.n) * steps_of(shape) * 128 /
                          (kMemoryPerCycle * machine.multiprocessors);
    // They overlap, but not fully if they take equally long.
    const double both = std::pow(std::pow(work, 6) + std::pow(memory, 6), 1.0 / 6);
    const double collecting = kCollecting + kCollectingElement * tile.rows * tile.columns;
    return both + (split > 1 ? collecting : 0);
}

Config config_of(const Shape& shape, const Machine& machine, const TileShape& tile, int split) {
    const std::int64_t tiles =
        tile.transposed || tile.pairs()
            ? likely_tiles(shape, tile)
            : shape.row_tiles_at_most(tile.rows) * divide_up(shape.n, tile.columns);
    std::int64_t most = std::int64_t{tile.blocks} * machine.multiprocessors;
    if (tile.pairs()) most -= most % 2;
    // A split-K cluster has one tile.
    const std::int64_t blocks = split > 1 ? tiles * split : std::min(tiles, most);
    return {Arch::kHopper,
            static_cast<std::size_t>(&tile - kTiles),
            tile.transposed ? tile.columns : tile.rows * tile.down(),
            tile.transposed ? tile.rows : tile.columns * tile.across(),
            tile.stages,
            split,
            static_cast<int>(blocks)};
}

}  // namespace

std::vector<Config> candidates(const Shape& shape, const Machine& machine, std::size_t most) {
    // The list of tiles may be too short for the tiles that fit best; one always exists.
    const auto suit_and_exist = [&](const TileShape& tile) {
        return exists(tile, shape, machine) && suits(tile, shape);
    };
    const bool choosy = std::any_of(std::begin(kTiles), std::end(kTiles), suit_and_exist);
    struct Ranked {
        double cost;
        const TileShape* tile;
        int split;
    };
    std::vector<Ranked> ranked;
    for (const TileShape& tile : kTiles) {
        if (!exists(tile, shape, machine) || (choosy && !suits(tile, shape))) continue;
        for (int parts = 1; parts <= kMaxSplit; ++parts) {
            if (!can_split(shape, machine, tile, parts)) continue;
            const double cost = dense_halves(shape) ? dense_cost_of(shape, machine, tile, parts)
                                                    : cost_of(shape, machine, tile, parts);
            ranked.push_back({cost, &tile, parts});
        }
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Ranked& a, const Ranked& b) { return a.cost < b.cost; });
    std::vector<Config> best;
    for (const Ranked& each : ranked) {
        if (best.size() == most) break;
        best.push_back(config_of(shape, machine, *each.tile, each.split));
    }
    return best;
}

}  // namespace gemm::hopper
