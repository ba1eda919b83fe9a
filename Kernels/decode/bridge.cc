#include "Kernels/decode/bridge.h"

#include "Kernels/bridge/convert.h"
#include "Kernels/bridge/planner.h"
#include "Kernels/decode/decode.h"
#include "Kernels/decode/lib.rs.h"

namespace decode::bridge {
namespace {

using device::narrow;
using device::pointer;

Decode params_of(const Step& step) {
    Decode params = {};
    params.q = pointer<void>(step.q);
    params.k_pages = pointer<void>(step.k_pages);
    params.v_pages = pointer<void>(step.v_pages);
    params.pages = pointer<std::int32_t>(step.page_indices);
    params.out = pointer<void>(step.out);
    params.shape = {narrow("batch", step.batch),           narrow("q_len", step.q_len),
                    narrow("heads", step.heads),           narrow("kv_heads", step.kv_heads),
                    narrow("head_dim", step.head_dim),     narrow("page_size", step.page_size),
                    narrow("pool_pages", step.pool_pages), step.fp8_cache ? 1 : 2};
    params.head_major = step.head_major;
    params.dtype = step.dtype;
    params.scale = step.scale;
    params.value_scale = step.value_scale;
    return params;
}

Machine machine(Variant variant) {
    const Machine machine = device::current_machine();
    return variant == Variant::Tuned ? machine : machine.portable();
}

}  // namespace

rust::String choice(const Step& step, Variant variant) {
    return device::to_string(choose(params_of(step).shape, machine(variant)).arch);
}

std::unique_ptr<device::Plan> plan(const Step& step, Variant variant,
                                   rust::Slice<const std::int32_t> indptr,
                                   rust::Slice<const std::int32_t> indices,
                                   rust::Slice<const std::int32_t> lengths) {
    const Decode params = params_of(step);
    const device::PageTable table = device::page_table(step.batch, indptr, indices, lengths);
    validate_pages(table, params.shape.cache());
    device::Planner planner;
    if (variant == Variant::Plain) {
        validate(table, params.shape.cache());
        const auto* offsets = pointer<std::int32_t>(step.page_indptr);
        const auto* kv_len = pointer<std::int32_t>(step.kv_len);
        return std::make_unique<device::Plan>(
            [=](cudaStream_t stream) { launch_plain(params, offsets, kv_len, stream); });
    }
    const Plan plan = decode::plan(params.shape, table, machine(variant));
    const Workspace workspace =
        planner.stage([&](device::Carver& carver) { return carve(carver, plan, params.shape); },
                      [&](const Workspace& host) { device::store(host.segments, plan.segments); });
    return planner.finish([=](cudaStream_t stream) { launch(params, plan, workspace, stream); },
                          device::Facts().add("plan", describe(plan)));
}

}  // namespace decode::bridge
