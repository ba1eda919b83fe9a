#include "Kernels/decode/config.h"

#include <algorithm>
#include <numeric>

#include "Kernels/decode/blackwell/tiles.h"
#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"

namespace decode {
namespace {

using device::divide_up;
using device::require;

std::string number(std::int64_t value) { return std::to_string(value); }

// SMs of a GPC, in which the blocks of a cluster are.
constexpr int kGpcMultiprocessors = 18;
// Percentage of SMs that clusters must keep busy: fewer would not use the memory's bandwidth.
constexpr int kLeastClusteredPercent = 80;

// Tiles of rows per warp of the portable kernel: registers hold the sums of two, or one of wide
// heads.
int portable_row_tiles(const Shape& shape) {
    return shape.rows() > kTileRows && shape.head_dim <= 128 ? 2 : 1;
}

// Tiles of rows per block of Blackwell's kernel: as few as hold all, or the most that were built; 0
// if it does not apply. Memory is the bound of both kernels (blackwell/tiles.h). This one leaves
// most issue slots free, widens no codes, and reads a cache once for up to 64 rows; unless it would
// read it more often than the portable kernel.
int blackwell_row_tiles(const Shape& shape) {
    if (shape.page_size < blackwell::kLeastPageTokens) return 0;
    int row_tiles = 0;
    for (const blackwell::TileShape& tile : blackwell::kTiles) {
        const bool fits = tile.head_dim == shape.head_dim && tile.cache_bytes == shape.cache_bytes;
        if (fits && row_tiles * kTileRows < shape.rows()) row_tiles = tile.row_tiles;
    }
    return row_tiles < portable_row_tiles(shape) ? 0 : row_tiles;
}

}  // namespace

void validate(const Shape& shape) {
    require(shape.head_dim == 64 || shape.head_dim == 128 || shape.head_dim == 256, "head_dim is ",
            shape.head_dim, "; use 64, 128 or 256");
    validate(shape.cache(), shape.q_len);
    require(shape.kv_heads > 0 && shape.heads > 0 && shape.heads % shape.kv_heads == 0, shape.heads,
            " heads do not share ", shape.kv_heads, " of the cache evenly");
    require(shape.cache_bytes == 1 || shape.cache_bytes == 2, "elements of the cache have ",
            shape.cache_bytes, " bytes; use 1 or 2");
}

Config choose(const Shape& shape, const Machine& machine) {
    validate(shape);
    if (machine.arch == Arch::kBlackwell) {
        if (const int row_tiles = blackwell_row_tiles(shape)) {
            return {Arch::kBlackwell, row_tiles, divide_up(shape.rows(), row_tiles * kTileRows),
                    blackwell::kTokens, 1};
        }
    }
    const int row_tiles = portable_row_tiles(shape);
    return {Arch::kPortable, row_tiles, divide_up(shape.rows(), row_tiles * kTileRows),
            tile_tokens(shape.head_dim, row_tiles, shape.cache_bytes), most_warps(shape.head_dim)};
}

namespace {

bool are_busy(int shares, int teams) { return shares * 100 >= teams * kLeastBusyPercent; }

// Items of `tiles` each in this many parts.
EvenCut parts_of(int items, int tiles, int parts, int items_per_share) {
    EvenCut cut;
    cut.segments = items * parts;
    cut.parts = Divisor(parts);
    cut.items_per_share = Divisor(items_per_share);
    cut.part_tiles = tiles / parts;
    cut.longer = tiles % parts;
    return cut;
}

// For teams of `team` of `warps` warps; none if too many of them would be idle.
EvenCut cut_evenly(int items, int tiles, int rows, int team, int warps) {
    const int teams = std::max(1, warps / team);
    const int items_per_share = divide_up(items, teams);
    // One team merges all parts of an item. If there would be many, half the teams reach the same
    // bandwidth and leave half the parts.
    const int merged = std::max({1, kMostMergedRows / rows, teams / items / 2});
    // At least one tile per warp.
    const int most = std::clamp(tiles / team, 1, merged);
    const int parts = std::clamp(teams / items, 1, most);
    const bool is_busy = are_busy(divide_up(items * parts, items_per_share), teams);
    if (parts < most && !is_busy) return {};
    return parts_of(items, tiles, parts, items_per_share);
}

// Single warps if each gets a whole item, else half blocks if they do, else whole blocks: merging
// parts takes time, and more parts take more.
EvenCut choose_even_cut(int items, int tiles, int rows, int warps, int most_team, int& team) {
    for (const int fewer : {1, kHalf, kWarps}) {
        if (fewer > most_team) break;
        team = fewer;
        if (are_busy(items, warps / team)) break;
    }
    return cut_evenly(items, tiles, rows, team, warps);
}

// Blocks of a cluster for up to `parts` of each of `items`, a power of two. A cluster lies in one
// GPC, which leaves some of its SMs idle. 1 if not all clusters would run at once, or too few SMs.
int choose_cluster(int parts, int items, int multiprocessors) {
    int blocks = blackwell::kMostClusterBlocks;
    while (blocks > std::max(parts, 1)) blocks /= 2;
    const int of_gpc = std::min(multiprocessors, kGpcMultiprocessors);
    const bool fit = items <= multiprocessors / of_gpc * (of_gpc / blocks);
    const bool are_enough = items * blocks * 100 >= multiprocessors * kLeastClusteredPercent;
    return fit && are_enough ? blocks : 1;
}

// Lists use half blocks, or whole ones if the longest item would have too many parts.
int choose_team(const std::vector<int>& tiles, int kv_heads, int warps, int most_team) {
    const std::int64_t total = std::accumulate(tiles.begin(), tiles.end(), std::int64_t{0});
    const std::int64_t longest = *std::max_element(tiles.begin(), tiles.end());
    const bool is_short = longest * (warps / kHalf) <= total * kv_heads * kMostParts;
    return std::min(most_team, is_short ? kHalf : kWarps);
}

// Every count as often as there are heads.
std::vector<int> repeated(const std::vector<int>& tiles, int heads) {
    std::vector<int> all;
    all.reserve(tiles.size() * heads);
    for (const int count : tiles) all.insert(all.end(), heads, count);
    return all;
}

// The segments of a list: the first of every share, then the others. Of each sequence it has this
// many KV heads.
std::vector<Segment> list_of(const device::SplitPlan& cut, const PageTable& table, int kv_heads) {
    std::vector<Segment> list(cut.segments.size());
    int next = cut.blocks();
    int sequence = 0;
    int kv_head = 0;
    int item = 0;
    for (int share = 0; share < cut.blocks(); ++share) {
        int at = share;
        for (int index = cut.block_begin[share]; index < cut.block_begin[share + 1]; ++index) {
            const device::Segment& part = cut.segments[index];
            // Items come in order, one at a time.
            if (part.item != item) {
                item = part.item;
                if (++kv_head == kv_heads) {
                    kv_head = 0;
                    ++sequence;
                }
            }
            const bool is_last = index + 1 == cut.block_begin[share + 1];
            list[at] = {sequence,
                        kv_head,
                        table.indptr[sequence],
                        table.lengths[sequence],
                        part.tile_begin,
                        part.tile_end,
                        part.slot,
                        part.first_slot,
                        part.parts,
                        item,
                        is_last ? -1 : next,
                        0};
            at = next;
            if (!is_last) ++next;
        }
    }
    return list;
}

}  // namespace

Plan plan(const Shape& shape, const PageTable& table, const Machine& machine) {
    const Config config = choose(shape, machine);
    device::validate(table, shape.cache());
    // Of one head of each sequence.
    std::vector<int> tiles(shape.batch);
    for (int sequence = 0; sequence < shape.batch; ++sequence) {
        tiles[sequence] = divide_up(table.lengths[sequence], config.tile_tokens);
    }
    const int items = shape.batch * shape.kv_heads;
    const int warps = machine.multiprocessors * config.warps / config.row_blocks;
    const int rows = std::min(shape.rows(), config.row_tiles * kTileRows);
    const int length = table.lengths[0];
    const bool is_equal = std::all_of(table.lengths, table.lengths + shape.batch,
                                      [&](int other) { return other == length; });

    Plan result = {};
    result.config = config;
    result.items = items;
    result.cluster_blocks = 1;
    // So that segment indices can be divided.
    const bool is_small = items <= 1 << 15;
    if (is_equal && is_small) {
        if (config.arch == Arch::kBlackwell) {
            result.cluster_blocks =
                choose_cluster(std::min(tiles[0], warps / items), items * config.row_blocks,
                               machine.multiprocessors);
        }
        result.team_warps = 1;
        result.even =
            result.cluster_blocks > 1
                ? parts_of(items, tiles[0], result.cluster_blocks, 1)
                : choose_even_cut(items, tiles[0], rows, warps, config.warps, result.team_warps);
    }
    if (result.is_even()) {
        result.even.kv_heads = Divisor(shape.kv_heads);
        result.even.pages = divide_up(length, shape.page_size);
        result.even.length = length;
        result.shares = divide_up(result.even.segments, result.even.items_per_share.value);
        result.slots = result.even.parts.value == 1 ? 0 : result.even.segments;
    } else {
        const int team = choose_team(tiles, shape.kv_heads, warps, config.warps);
        const int teams = std::max(1, warps / team);
        // Heads are cut alike, which makes plans shorter, if that leaves no team idle.
        const int each = teams / shape.kv_heads;
        const int alike = are_busy(each * shape.kv_heads, teams) ? shape.kv_heads : 1;
        const int listed = shape.kv_heads / alike;
        if (listed > 1) tiles = repeated(tiles, listed);
        const device::SplitPlan cut = device::split(tiles, {teams / alike, 2 * team, 2 * team});
        result.segments = list_of(cut, table, listed);
        result.list = {Divisor(alike), cut.slots};
        result.shares = cut.blocks() * alike;
        result.slots = cut.slots * alike;
        result.team_warps = team;
    }
    if (config.arch == Arch::kBlackwell) {
        result.blocks = result.teams();
        return result;
    }
    // Teams on all SMs, even if that leaves fewer teams per block than fit.
    result.block_warps = std::max(kHalf, result.team_warps);
    const int resident = machine.multiprocessors * config.warps / result.block_warps;
    result.blocks = std::max(divide_up(result.teams() * result.team_warps, result.block_warps),
                             std::min(resident, result.teams()));
    return result;
}

std::string describe(const Plan& plan) {
    const bool is_blackwell = plan.config.arch == Arch::kBlackwell;
    return (is_blackwell ? "blackwell, " : "") + ("rows " + number(plan.config.row_blocks)) + "x" +
           number(plan.config.row_tiles * kTileRows) + " tile " + number(plan.config.tile_tokens) +
           (is_blackwell ? " cluster " + number(plan.cluster_blocks)
                         : " team " + number(plan.team_warps)) +
           " blocks " + number(plan.blocks) + (plan.is_even() ? " even" : " list") + " shares " +
           number(plan.shares) + " slots " + number(plan.slots);
}

}  // namespace decode
