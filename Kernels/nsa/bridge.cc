#include "Kernels/nsa/bridge.h"

#include "Kernels/bridge/convert.h"
#include "Kernels/nsa/lib.rs.h"

namespace nsa::bridge {
namespace {

using device::narrow;
using device::pointer;

Branch branch_of(const Nsa& given) {
    return {given.dtype,
            static_cast<std::int64_t>(given.tokens),
            narrow("sequence", given.sequence),
            narrow("heads", given.heads),
            narrow("groups", given.groups),
            narrow("dim", given.dim),
            given.scale,
            pointer<void>(given.queries),
            pointer<void>(given.keys),
            pointer<void>(given.values),
            pointer<void>(given.out),
            pointer<float>(given.lse)};
}

Gated gated_of(const Nsa& given) {
    Gated params = {};
    params.dtype = given.dtype;
    params.rows = static_cast<std::int64_t>(given.tokens * given.heads);
    params.dim = narrow("dim", given.dim);
    for (int branch = 0; branch < 3; ++branch) {
        params.outputs[branch] = pointer<void>(given.outputs[branch]);
        params.gates[branch] = pointer<void>(given.gates[branch]);
    }
    params.out = pointer<void>(given.out);
    return params;
}

// Calls `function` with the parameters of the operation.
template <class Function>
auto with_params(const Nsa& given, Function&& function) {
    switch (given.op) {
        case Op::Selected:
            return function(Selected{branch_of(given), narrow("block", given.block),
                                     narrow("selected", given.selected),
                                     pointer<std::int32_t>(given.blocks)});
        case Op::Compressed:
            return function(
                Banded{branch_of(given), Reach::kCompressed, narrow("block", given.block)});
        case Op::Sliding:
            return function(
                Banded{branch_of(given), Reach::kWindow, narrow("window", given.window)});
        case Op::Gated:
            return function(gated_of(given));
    }
    device::refuse("unknown operation");
}

}  // namespace

void check(const Nsa& given, Variant variant) {
    with_params(given, [&](const auto& params) {
        variant == Variant::Plain ? check_plain(params) : nsa::check(params);
    });
}

std::unique_ptr<Plan> plan(const Nsa& given, Variant variant) {
    return with_params(given, [&](const auto& params) { return device::plan(params, variant); });
}

}  // namespace nsa::bridge
