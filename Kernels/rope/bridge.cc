#include "Kernels/rope/bridge.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/rope/lib.rs.h"
#include "Kernels/rope/rope.h"

namespace rope::bridge {
namespace {

device::ElementType element_type(Dtype dtype) {
    switch (dtype) {
        case Dtype::F32:
            return device::ElementType::kF32;
        case Dtype::F16:
            return device::ElementType::kF16;
        case Dtype::Bf16:
            return device::ElementType::kBf16;
    }
    throw std::invalid_argument("unknown dtype");
}

int as_int(const char* name, std::size_t value) {
    if (value > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                                    "; that does not fit in 31 bits");
    }
    return static_cast<int>(value);
}

}  // namespace

void launch(const Rope& rope, Variant variant, std::size_t stream) {
    rope::Rope params = {};
    params.pass = rope.backward ? Pass::kBackward : Pass::kForward;
    params.interleaved = rope.interleaved;
    params.type = element_type(rope.dtype);
    params.tokens = static_cast<std::int64_t>(rope.tokens);
    params.sequence = static_cast<std::int64_t>(rope.sequence);
    params.query_heads = as_int("query_heads", rope.query_heads);
    params.key_heads = as_int("key_heads", rope.key_heads);
    params.dim = as_int("dim", rope.dim);
    params.queries = reinterpret_cast<void*>(rope.queries);
    params.keys = reinterpret_cast<void*>(rope.keys);
    params.cos = reinterpret_cast<const float*>(rope.cos);
    params.sin = reinterpret_cast<const float*>(rope.sin);
    const auto cuda_stream = reinterpret_cast<cudaStream_t>(stream);
    if (variant == Variant::Plain) {
        rope::launch_plain(params, cuda_stream);
    } else {
        rope::launch(params, cuda_stream);
    }
}

}  // namespace rope::bridge
