#include "Kernels/attention/bridge.h"

#include <stdexcept>
#include <vector>

#include "Kernels/attention/lib.rs.h"
#include "Kernels/attention/prefill.h"
#include "Kernels/bridge/convert.h"
#include "Kernels/device/launch.h"

namespace attention::bridge {
namespace {

using device::narrow;
using device::pointer;

Shape config_shape(const PrefillShape& shape) {
    return {static_cast<std::int64_t>(shape.total_q), narrow("heads", shape.heads),
            narrow("kv_heads", shape.kv_heads), narrow("head_dim", shape.head_dim),
            narrow("longest_kv", shape.longest_kv)};
}

attention::Prefill params_of(const PrefillTensors& tensors, const PrefillShape& shape) {
    attention::Prefill params = {};
    params.q = pointer<void>(tensors.q);
    params.k = pointer<void>(tensors.k);
    params.v = pointer<void>(tensors.v);
    params.out = pointer<void>(tensors.out);
    params.lse = pointer<float>(tensors.lse);
    params.total_q = narrow("total_q", shape.total_q);
    params.total_kv = narrow("total_kv", shape.total_kv);
    params.heads = narrow("heads", shape.heads);
    params.kv_heads = narrow("kv_heads", shape.kv_heads);
    params.head_dim = narrow("head_dim", shape.head_dim);
    params.causal = shape.causal;
    params.scale = shape.scale;
    params.type = shape.dtype == Dtype::Bf16 ? ElementType::kBf16 : ElementType::kF16;
    return params;
}

}  // namespace

PrefillPlan::PrefillPlan(const Config& config, const Sequences& sequences) : config_(config) {
    static_assert(sizeof(WorkCounters) <= sizeof(Tile), "the counters take the place of one tile");
    std::vector<Tile> tiles = cut_tiles(sequences, config.tile_rows);
    if (tiles.empty()) throw std::invalid_argument("no sequence has a query");
    tile_count_ = tiles.size();
    tiles.insert(tiles.begin(), Tile{});
    const std::size_t bytes = tiles.size() * sizeof(Tile);
    memory_ = device::Memory(bytes);
    device::check(cudaMemcpy(memory_.start(), tiles.data(), bytes, cudaMemcpyHostToDevice),
                  "cudaMemcpy of tiles");
}

bool suits_wgmma(const PrefillShape& shape) {
    return choose(config_shape(shape), {/*multiprocessors=*/1, /*has_wgmma=*/true}).kernel ==
           Kernel::kWgmma;
}

std::unique_ptr<PrefillPlan> plan_prefill(const PrefillShape& shape, KernelChoice choice,
                                          rust::Slice<const std::int32_t> starts_q,
                                          rust::Slice<const std::int32_t> starts_kv) {
    const Sequences sequences = {
        {starts_q.begin(), starts_q.end()}, {starts_kv.begin(), starts_kv.end()}, shape.causal};
    Machine machine = current_machine();
    if (choice == KernelChoice::Portable) machine.has_wgmma = false;
    return std::make_unique<PrefillPlan>(choose(config_shape(shape), machine), sequences);
}

void prefill(const PrefillTensors& tensors, const PrefillShape& shape, const PrefillPlan& plan,
             std::size_t stream) {
    attention::Prefill params = params_of(tensors, shape);
    params.tiles = plan.tiles();
    params.counters = plan.counters();
    params.tile_count = narrow("tiles", plan.tile_count());
    launch(params, plan.config(), pointer<CUstream_st>(stream));
}

void plain_prefill(const PrefillTensors& tensors, const PrefillShape& shape, std::size_t sequences,
                   std::size_t stream) {
    const PlainPrefill params = {params_of(tensors, shape), pointer<std::int32_t>(tensors.starts_q),
                                 pointer<std::int32_t>(tensors.starts_kv),
                                 narrow("sequences", sequences)};
    launch_plain(params, pointer<CUstream_st>(stream));
}

}  // namespace attention::bridge
