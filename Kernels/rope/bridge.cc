#include "Kernels/rope/bridge.h"

#include "Kernels/bridge/convert.h"
#include "Kernels/rope/lib.rs.h"
#include "Kernels/rope/rope.h"

namespace rope::bridge {
namespace {

using device::narrow;
using device::pointer;

rope::Rope params_of(const Rope& rope) {
    return {rope.backward ? Pass::kBackward : Pass::kForward,
            rope.interleaved,
            rope.dtype,
            static_cast<std::int64_t>(rope.tokens),
            static_cast<std::int64_t>(rope.sequence),
            narrow("query_heads", rope.query_heads),
            narrow("key_heads", rope.key_heads),
            narrow("dim", rope.dim),
            pointer<void>(rope.queries),
            pointer<void>(rope.keys),
            pointer<float>(rope.cos),
            pointer<float>(rope.sin)};
}

}  // namespace

void check(const Rope& rope, Variant) { rope::check(params_of(rope)); }

std::unique_ptr<Plan> plan(const Rope& rope, Variant variant) {
    return device::plan(params_of(rope), variant);
}

}  // namespace rope::bridge
