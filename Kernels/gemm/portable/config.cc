#include "Kernels/gemm/config.h"

#include <algorithm>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"
#include "Kernels/gemm/portable/tiles.h"

namespace gemm::portable {

Config choose(const Shape& shape, const Machine& machine) {
    const int low = kTiles[1].rows;
    const bool fits =
        shape.layout == Layout::kDense || shape.row_tiles_at_most(low) <= kMaxRowTiles;
    const std::size_t index = fits && shape.likely_rows() <= 2 * low ? 1 : 0;
    const TileShape& tile = kTiles[index];
    const std::int64_t tiles =
        shape.row_tiles_at_most(tile.rows) * device::divide_up(shape.n, tile.columns);
    const std::int64_t resident = std::int64_t{tile.blocks} * machine.multiprocessors;
    return {Arch::kPortable, index,
            tile.rows,       tile.columns,
            tile.stages,
            /*split=*/1,     static_cast<int>(std::min(tiles, resident))};
}

}  // namespace gemm::portable
