#include "Kernels/prefill/bridge.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "Kernels/bridge/convert.h"
#include "Kernels/bridge/planner.h"
#include "Kernels/prefill/lib.rs.h"
#include "Kernels/prefill/prefill.h"

namespace prefill::bridge {
namespace {

using device::narrow;
using device::pointer;

Prefill params_of(const Batch& batch) {
    Prefill params = {};
    params.q = pointer<void>(batch.q);
    params.k = pointer<void>(batch.k);
    params.v = pointer<void>(batch.v);
    params.out = pointer<void>(batch.out);
    params.lse = pointer<float>(batch.lse);
    params.total_q = narrow("total_q", batch.total_q);
    params.total_kv = narrow("total_kv", batch.total_kv);
    params.heads = narrow("heads", batch.heads);
    params.kv_heads = narrow("kv_heads", batch.kv_heads);
    params.head_dim = narrow("head_dim", batch.head_dim);
    params.value_dim = narrow("value_dim", batch.value_dim);
    params.causal = batch.causal;
    params.scale = batch.scale;
    params.dtype = batch.dtype;
    return params;
}

Config config_of(const Batch& batch, Variant variant) {
    const Shape shape = {static_cast<std::int64_t>(batch.total_q),
                         narrow("sequences", batch.sequences),
                         narrow("heads", batch.heads),
                         narrow("kv_heads", batch.kv_heads),
                         narrow("head_dim", batch.head_dim),
                         narrow("value_dim", batch.value_dim),
                         narrow("longest_kv", batch.longest_kv),
                         batch.causal};
    const Machine machine = device::current_machine();
    return choose(shape, variant == Variant::Tuned ? machine : machine.portable());
}

// Sets how many heads share a tile, and how many are worked on at once.
Work cut_work(const Sequences& sequences, const Config& config, Prefill& params) {
    const int group = params.heads / params.kv_heads;
    const bool packs = config.arch == Arch::kHopper;
    params.heads_per_tile = packs ? heads_per_tile(sequences, config.tile, group) : 1;
    params.heads_at_once = params.heads;
    std::vector<Tile> tiles = cut_tiles(sequences, config.tile.rows / params.heads_per_tile);
    device::require(!tiles.empty(), "no sequence has a query");
    if (config.arch == Arch::kPortable) return {std::move(tiles), {}, 0};
    const int multiprocessors = device::multiprocessors();
    Work work = split_keys(std::move(tiles), params.heads / params.heads_per_tile, config.tile.keys,
                           multiprocessors);
    const int times = group / params.heads_per_tile;
    const std::int64_t pair_bytes =
        (params.head_dim + params.value_dim) * bits_of(params.dtype) / 8;
    const Cached cached = {params.kv_heads, params.total_kv * pair_bytes, config.tile.rows * times};
    params.heads_at_once =
        kv_heads_at_once(work, cached, times, {multiprocessors, config.arch}) * group;
    return work;
}

int most_rows(const std::vector<Merge>& merges) {
    int most = 0;
    for (const Merge& merge : merges) most = std::max(most, merge.rows);
    return most;
}

struct Workspace {
    WorkCounters* counters;
    const Tile* tiles;
    const Merge* merges;
    float* sums;
    float2* maxima;
};

}  // namespace

rust::String choice(const Batch& batch, Variant variant) {
    return describe(config_of(batch, variant));
}

std::unique_ptr<device::Plan> plan(const Batch& batch, Variant variant,
                                   rust::Slice<const std::int32_t> starts_q,
                                   rust::Slice<const std::int32_t> starts_kv) {
    device::Planner planner;
    const Config config = config_of(batch, variant);
    Prefill params = params_of(batch);
    if (variant == Variant::Plain) {
        const PlainPrefill plain = {params, pointer<std::int32_t>(batch.starts_q),
                                    pointer<std::int32_t>(batch.starts_kv),
                                    narrow("sequences", starts_q.size()) - 1};
        return std::make_unique<device::Plan>(
            [=](cudaStream_t stream) { launch_plain(plain, stream); });
    }
    const Sequences sequences = {
        {starts_q.begin(), starts_q.end()}, {starts_kv.begin(), starts_kv.end()}, batch.causal};
    const Work work = cut_work(sequences, config, params);
    const std::size_t part_rows = static_cast<std::size_t>(work.part_rows) * params.heads;
    const Workspace workspace = planner.stage(
        [&](device::Carver& carver) {
            Workspace sections = {};
            sections.tiles = carver.take<Tile>(work.tiles.size());
            sections.merges = carver.take<Merge>(work.merges.size());
            carver.end_tables();
            sections.counters = carver.take<WorkCounters>(1);
            carver.end_counters();
            sections.sums = carver.take<float>(part_rows * params.value_dim);
            sections.maxima = carver.take<float2>(part_rows);
            return sections;
        },
        [&](const Workspace& host) {
            device::store(host.tiles, work.tiles);
            device::store(host.merges, work.merges);
        });
    params.counters = workspace.counters;
    params.tiles = workspace.tiles;
    params.tile_count = narrow("tiles", work.tiles.size());
    params.parts = {workspace.merges, workspace.sums, workspace.maxima,
                    narrow("merges", work.merges.size()), most_rows(work.merges)};
    return planner.finish([=](cudaStream_t stream) { launch(params, config, stream); },
                          device::Facts()
                              .add("config", describe(config))
                              .add("tiles", work.tiles.size())
                              .add("merges", work.merges.size())
                              .add("heads_per_tile", params.heads_per_tile)
                              .add("heads_at_once", params.heads_at_once));
}

}  // namespace prefill::bridge
