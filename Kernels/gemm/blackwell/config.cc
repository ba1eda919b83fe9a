// The tile heuristic: cycles of the busiest unit, from the machine's rates; the cheapest wins. No
// time was measured on this architecture.
#include "Kernels/gemm/config.h"

#include <algorithm>
#include <iterator>

#include "Kernels/device/integers.h"
#include "Kernels/gemm/blackwell/tiles.h"

namespace gemm::blackwell {
namespace {

using device::divide_up;

Scales scales_of(const Shape& shape) {
    return shape.block_scaled() ? Scales::kTiles : shape.scaled() ? Scales::kBlocks : Scales::kNone;
}

// Contiguous groups start at multiples of 128 rows, and masked ones end anywhere: their tiles have
// 128.
bool exists(const TileShape& tile, const Shape& shape, const Machine& machine) {
    if (tile.scales != scales_of(shape) || tile.blocks > machine.multiprocessors) return false;
    // The second block of a pair needs rows of its own.
    return tile.blocks == 1 || (shape.layout == Layout::kDense && shape.rows > 128);
}

std::int64_t likely_tiles(const Shape& shape, const TileShape& tile) {
    const std::int64_t groups = shape.layout == Layout::kDense ? 1 : shape.groups;
    return groups * divide_up(shape.likely_rows(), tile.rows()) * divide_up(shape.n, tile.columns);
}

double cost_of(const Shape& shape, const Machine& machine, const TileShape& tile) {
    constexpr double kProductsPerCycle = 64;  // of 128 bytes of k, per SM
    constexpr double kBytesPerCycle = 64;     // from L2, per SM
    constexpr double kStageBytes = 128;       // of k, per row
    constexpr double kEnds = 3000;            // first stage, and last tile's epilogue
    // Of an odd number of SMs, pairs leave one idle.
    const std::int64_t waves =
        divide_up(likely_tiles(shape, tile), machine.multiprocessors / tile.blocks);
    const double products = 128 * tile.columns / kProductsPerCycle;
    // Rows that do not exist are not copied.
    const double rows = std::min<double>(128, static_cast<double>(shape.likely_rows()));
    const double copies = (rows + tile.columns / tile.blocks) * kStageBytes / kBytesPerCycle;
    const double steps = static_cast<double>(divide_up(shape.k_bytes(), std::int64_t{128}));
    return static_cast<double>(waves) * steps * std::max(products, copies) + kEnds;
}

}  // namespace

Config choose(const Shape& shape, const Machine& machine) {
    const TileShape* best = nullptr;
    double least = 0;
    for (const TileShape& tile : kTiles) {
        if (!exists(tile, shape, machine)) continue;
        const double cost = cost_of(shape, machine, tile);
        if (best == nullptr || cost < least) {
            best = &tile;
            least = cost;
        }
    }
    const std::int64_t tiles =
        shape.row_tiles_at_most(best->rows()) * divide_up(shape.n, best->columns);
    const std::int64_t most = machine.multiprocessors / best->blocks;
    return {Arch::kBlackwell, static_cast<std::size_t>(best - kTiles),
            best->rows(),     best->columns,
            best->stages,
            /*split=*/1,      static_cast<int>(std::min(tiles, most)) * best->blocks};
}

}  // namespace gemm::blackwell
