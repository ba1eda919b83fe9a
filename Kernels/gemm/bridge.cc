#include "Kernels/gemm/bridge.h"

#include <map>
#include <mutex>
#include <tuple>

#include "Kernels/bridge/convert.h"
#include "Kernels/bridge/facts.h"
#include "Kernels/gemm/gemm.h"
#include "Kernels/gemm/lib.rs.h"
#include "Kernels/gemm/measure.h"

namespace gemm::bridge {
namespace {

using device::narrow;
using device::pointer;

gemm::Layout layout_of(Layout layout) {
    device::require(layout <= Layout::Masked, "unknown layout");
    return layout == Layout::Dense        ? gemm::Layout::kDense
           : layout == Layout::Contiguous ? gemm::Layout::kContiguous
                                          : gemm::Layout::kMasked;
}

Gemm params_of(const Product& product) {
    Gemm params = {};
    params.a = pointer<void>(product.a);
    params.b = pointer<void>(product.b);
    params.out = pointer<void>(product.out);
    params.a_scales = pointer<void>(product.a_scales);
    params.b_scales = pointer<void>(product.b_scales);
    params.tensor_scale = pointer<float>(product.tensor_scale);
    params.index = pointer<std::int32_t>(product.index);
    params.shape.rows = narrow("rows", product.rows);
    params.shape.n = narrow("n", product.n);
    params.shape.k = narrow("k", product.k);
    params.shape.groups = narrow("groups", product.groups);
    params.shape.dtype = product.dtype;
    params.shape.layout = layout_of(product.layout);
    params.shape.expected_rows = narrow("expected_rows", product.expected_rows);
    return params;
}

Config config_of(const Shape& shape, Variant variant) {
    const Machine machine = device::current_machine();
    return choose(shape, variant == Variant::Tuned ? machine : machine.portable());
}

device::Facts facts_of(const Config& config) {
    device::Facts facts;
    facts.add("kernel", device::to_string(config.arch))
        .add("tile", std::to_string(config.tile_rows) + "x" + std::to_string(config.tile_columns))
        .add("stages", config.stages)
        .add("split_k", config.split)
        .add("blocks", config.blocks);
    return facts;
}

std::unique_ptr<device::Plan> plan_of(const Gemm& params, const Config& config,
                                      const device::Facts& facts) {
    return std::make_unique<device::Plan>(
        [=](cudaStream_t stream) { launch(params, config, stream); }, facts.json());
}

// Measured once for each shape.
std::size_t rank_of_fastest(const std::vector<Config>& found, const Gemm& params) {
    static std::mutex mutex;
    static std::map<std::tuple<int, int, int, int, Dtype, gemm::Layout, int>, std::size_t> known;
    const Shape& shape = params.shape;
    const std::tuple key(shape.rows, shape.n, shape.k, shape.groups, shape.dtype, shape.layout,
                         shape.expected_rows);
    const std::lock_guard lock(mutex);
    const auto at = known.find(key);
    if (at != known.end()) return at->second;
    return known[key] = fastest_of(found, params);
}

}  // namespace

rust::String choice(const Product& product, Variant variant) {
    const Shape shape = params_of(product).shape;
    if (variant == Variant::Plain) {
        validate(shape);
        return "plain";
    }
    return describe(config_of(shape, variant));
}

std::unique_ptr<device::Plan> plan(const Product& product, Variant variant) {
    const Gemm params = params_of(product);
    if (variant == Variant::Plain) {
        validate(params);
        return std::make_unique<device::Plan>(
            [=](cudaStream_t stream) { launch_plain(params, stream); },
            device::Facts().add("kernel", "plain").json());
    }
    const Config config = config_of(params.shape, variant);
    validate(params);
    return plan_of(params, config, facts_of(config));
}

std::unique_ptr<device::Plan> measured_plan(const Product& product) {
    constexpr std::size_t kCandidates = 8;
    const Gemm params = params_of(product);
    const std::vector<Config> found =
        candidates(params.shape, device::current_machine(), kCandidates);
    validate(params);
    const std::size_t rank = rank_of_fastest(found, params);
    return plan_of(params, found[rank],
                   facts_of(found[rank]).add("candidates", found.size()).add("rank", rank));
}

}  // namespace gemm::bridge
