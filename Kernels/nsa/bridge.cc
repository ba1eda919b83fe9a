#include "Kernels/nsa/bridge.h"

#include "Kernels/bridge/convert.h"
#include "Kernels/nsa/lib.rs.h"
#include "Kernels/nsa/nsa.h"

namespace nsa::bridge {
namespace {

using device::narrow;
using device::pointer;

void fill(nsa::Branch& params, const Branch& given) {
    params.dtype = given.dtype;
    params.tokens = static_cast<std::int64_t>(given.tokens);
    params.sequence = narrow("sequence", given.sequence);
    params.heads = narrow("heads", given.heads);
    params.groups = narrow("groups", given.groups);
    params.dim = narrow("dim", given.dim);
    params.scale = given.scale;
    params.queries = pointer<void>(given.queries);
    params.keys = pointer<void>(given.keys);
    params.values = pointer<void>(given.values);
    params.out = pointer<void>(given.out);
    params.lse = pointer<float>(given.lse);
}

template <class Params>
void launch(const Params& params, Variant variant, std::size_t stream) {
    const auto cuda_stream = pointer<CUstream_st>(stream);
    if (variant == Variant::Plain) {
        nsa::launch_plain(params, cuda_stream);
    } else {
        nsa::launch(params, cuda_stream);
    }
}

}  // namespace

void selected(const Selected& given, Variant variant, std::size_t stream) {
    nsa::Selected params = {};
    fill(params, given.branch);
    params.block = narrow("block", given.block);
    params.selected = narrow("selected", given.selected);
    params.blocks = pointer<std::int32_t>(given.blocks);
    launch(params, variant, stream);
}

void banded(const Banded& given, Variant variant, std::size_t stream) {
    nsa::Banded params = {};
    fill(params, given.branch);
    params.reach = given.reach == Reach::Window ? nsa::Reach::kWindow : nsa::Reach::kCompressed;
    params.size = narrow("size", given.size);
    launch(params, variant, stream);
}

void gated(const Gated& given, Variant variant, std::size_t stream) {
    nsa::Gated params = {};
    params.dtype = given.dtype;
    params.rows = static_cast<std::int64_t>(given.rows);
    params.dim = narrow("dim", given.dim);
    for (int branch = 0; branch < 3; ++branch) {
        params.outputs[branch] = pointer<void>(given.outputs[branch]);
        params.gates[branch] = pointer<void>(given.gates[branch]);
    }
    params.out = pointer<void>(given.out);
    launch(params, variant, stream);
}

}  // namespace nsa::bridge
