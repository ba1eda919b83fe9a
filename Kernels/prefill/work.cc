#include "Kernels/prefill/work.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace prefill {
namespace {

[[noreturn]] void refuse(std::size_t sequence, std::int64_t queries, std::int64_t keys,
                         const char* why) {
    throw std::invalid_argument("sequence " + std::to_string(sequence) + " has " +
                                std::to_string(queries) + " queries and " + std::to_string(keys) +
                                " keys; " + why);
}

// Keys times rows, as the tensor cores see them.
std::int64_t work(const Tile& tile, bool causal) {
    const std::int64_t keys = tile.visible + (causal ? tile.rows - 1 : 0);
    return keys * tile.rows;
}

}  // namespace

std::vector<Tile> cut_tiles(const Sequences& sequences, int tile_rows) {
    const auto& [starts_q, starts_kv, causal] = sequences;
    if (starts_q.empty() || starts_q.size() != starts_kv.size()) {
        throw std::invalid_argument(std::to_string(starts_q.size()) + " starts of queries and " +
                                    std::to_string(starts_kv.size()) +
                                    " of keys; both must be one more than the number of sequences");
    }
    if (tile_rows < 1)
        throw std::invalid_argument("tiles of " + std::to_string(tile_rows) + " rows");
    std::vector<Tile> tiles;
    for (std::size_t sequence = 0; sequence + 1 < starts_q.size(); ++sequence) {
        const std::int32_t queries = starts_q[sequence + 1] - starts_q[sequence];
        const std::int32_t keys = starts_kv[sequence + 1] - starts_kv[sequence];
        if (queries < 0 || keys < 0) refuse(sequence, queries, keys, "starts must not decrease");
        if (queries > 0 && keys == 0) refuse(sequence, queries, keys, "a query must see a key");
        if (causal && queries > keys) {
            refuse(sequence, queries, keys,
                   "with the causal mask its first queries would see no key");
        }
        for (std::int32_t first = 0; first < queries; first += tile_rows) {
            Tile tile;
            tile.first_row = starts_q[sequence] + first;
            tile.rows = std::min(tile_rows, queries - first);
            tile.first_key = starts_kv[sequence];
            tile.visible = causal ? keys - queries + first + 1 : keys;
            tiles.push_back(tile);
        }
    }
    std::stable_sort(tiles.begin(), tiles.end(), [causal = causal](const Tile& a, const Tile& b) {
        return work(a, causal) > work(b, causal);
    });
    return tiles;
}

int heads_per_tile(const Sequences& sequences, const TileShape& tile, int group) {
    if (group == 1 || group > tile.rows) return 1;
    // Steps of a group; a tile costs about one more than it has.
    const auto steps = [&](int heads) {
        std::int64_t sum = 0;
        for (const Tile& cut : cut_tiles(sequences, tile.rows / heads)) {
            const std::int64_t seen = cut.visible + (sequences.causal ? cut.rows - 1 : 0);
            sum += (seen + tile.keys - 1) / tile.keys + 1;
        }
        return sum * (group / heads);
    };
    return steps(group) < steps(1) ? group : 1;
}

}  // namespace prefill
