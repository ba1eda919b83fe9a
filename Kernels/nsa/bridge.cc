#include "Kernels/nsa/bridge.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/nsa/lib.rs.h"
#include "Kernels/nsa/nsa.h"

namespace nsa::bridge {
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

void launch(const Selected& selected, Variant variant, std::size_t stream) {
    nsa::Selected params = {};
    params.type = element_type(selected.dtype);
    params.tokens = static_cast<std::int64_t>(selected.tokens);
    params.sequence = as_int("sequence", selected.sequence);
    params.heads = as_int("heads", selected.heads);
    params.groups = as_int("groups", selected.groups);
    params.dim = as_int("dim", selected.dim);
    params.block = as_int("block", selected.block);
    params.selected = as_int("selected", selected.selected);
    params.scale = selected.scale;
    params.queries = reinterpret_cast<const void*>(selected.queries);
    params.keys = reinterpret_cast<const void*>(selected.keys);
    params.values = reinterpret_cast<const void*>(selected.values);
    params.blocks = reinterpret_cast<const std::int32_t*>(selected.blocks);
    params.out = reinterpret_cast<void*>(selected.out);
    params.lse = reinterpret_cast<float*>(selected.lse);
    const auto cuda_stream = reinterpret_cast<cudaStream_t>(stream);
    if (variant == Variant::Plain) {
        nsa::launch_plain(params, cuda_stream);
    } else {
        nsa::launch(params, cuda_stream);
    }
}

}  // namespace nsa::bridge
