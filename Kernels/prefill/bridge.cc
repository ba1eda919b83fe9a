#include "Kernels/prefill/bridge.h"

#include <vector>

#include "Kernels/bridge/convert.h"
#include "Kernels/bridge/facts.h"
#include "Kernels/device/memory.h"
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
    params.causal = batch.causal;
    params.scale = batch.scale;
    params.dtype = batch.dtype;
    return params;
}

Config config_of(const Batch& batch, Variant variant) {
    const Shape shape = {static_cast<std::int64_t>(batch.total_q), narrow("heads", batch.heads),
                         narrow("kv_heads", batch.kv_heads), narrow("head_dim", batch.head_dim),
                         narrow("longest_kv", batch.longest_kv)};
    const Machine machine = device::current_machine();
    return choose(shape, variant == Variant::Tuned ? machine : machine.portable());
}

// The counters take the space of one tile; the tiles follow.
device::Memory upload(std::vector<Tile> tiles) {
    static_assert(sizeof(WorkCounters) <= sizeof(Tile),
                  "the counters fit in the space of one tile");
    tiles.insert(tiles.begin(), Tile{});
    device::Memory memory(tiles.size() * sizeof(Tile));
    device::upload(static_cast<const Tile*>(memory.start()), tiles);
    return memory;
}

}  // namespace

rust::String choice(const Batch& batch, Variant variant) {
    return describe(config_of(batch, variant));
}

std::unique_ptr<device::Plan> plan(const Batch& batch, Variant variant,
                                   rust::Slice<const std::int32_t> starts_q,
                                   rust::Slice<const std::int32_t> starts_kv) {
    const Config config = config_of(batch, variant);
    Prefill params = params_of(batch);
    if (variant == Variant::Plain) {
        const PlainPrefill plain = {params, pointer<std::int32_t>(batch.starts_q),
                                    pointer<std::int32_t>(batch.starts_kv),
                                    narrow("sequences", starts_q.size()) - 1};
        return std::make_unique<device::Plan>(
            [=](cudaStream_t stream) { launch_plain(plain, stream); });
    }
    const std::vector<Tile> tiles = cut_tiles(
        {{starts_q.begin(), starts_q.end()}, {starts_kv.begin(), starts_kv.end()}, batch.causal},
        config.tile.rows);
    device::require(!tiles.empty(), "no sequence has a query");
    const auto memory = std::make_shared<device::Memory>(upload(tiles));
    params.counters = static_cast<WorkCounters*>(memory->start());
    params.tiles = static_cast<const Tile*>(memory->start()) + 1;
    params.tile_count = narrow("tiles", tiles.size());
    return std::make_unique<device::Plan>(
        [=, keep = memory](cudaStream_t stream) { launch(params, config, stream); },
        device::Facts().add("config", describe(config)).add("tiles", tiles.size()).json());
}

}  // namespace prefill::bridge
