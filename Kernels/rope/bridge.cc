#include "Kernels/rope/bridge.h"

#include "Kernels/bridge/convert.h"
#include "Kernels/rope/lib.rs.h"
#include "Kernels/rope/rope.h"

namespace rope::bridge {
namespace {

using device::narrow;
using device::pointer;

}  // namespace

void launch(const Rope& rope, Variant variant, std::size_t stream) {
    rope::Rope params = {};
    params.pass = rope.backward ? Pass::kBackward : Pass::kForward;
    params.interleaved = rope.interleaved;
    params.dtype = rope.dtype;
    params.tokens = static_cast<std::int64_t>(rope.tokens);
    params.sequence = static_cast<std::int64_t>(rope.sequence);
    params.query_heads = narrow("query_heads", rope.query_heads);
    params.key_heads = narrow("key_heads", rope.key_heads);
    params.dim = narrow("dim", rope.dim);
    params.queries = pointer<void>(rope.queries);
    params.keys = pointer<void>(rope.keys);
    params.cos = pointer<float>(rope.cos);
    params.sin = pointer<float>(rope.sin);
    const auto cuda_stream = pointer<CUstream_st>(stream);
    if (variant == Variant::Plain) {
        rope::launch_plain(params, cuda_stream);
    } else {
        rope::launch(params, cuda_stream);
    }
}

}  // namespace rope::bridge
