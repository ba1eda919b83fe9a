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

const void* readable(std::size_t address) { return reinterpret_cast<const void*>(address); }

void fill(nsa::Branch& params, const Branch& given) {
    params.type = element_type(given.dtype);
    params.tokens = static_cast<std::int64_t>(given.tokens);
    params.sequence = as_int("sequence", given.sequence);
    params.heads = as_int("heads", given.heads);
    params.groups = as_int("groups", given.groups);
    params.dim = as_int("dim", given.dim);
    params.scale = given.scale;
    params.queries = readable(given.queries);
    params.keys = readable(given.keys);
    params.values = readable(given.values);
    params.out = reinterpret_cast<void*>(given.out);
    params.lse = reinterpret_cast<float*>(given.lse);
}

template <class Params>
void launch(const Params& params, Variant variant, std::size_t stream) {
    const auto cuda_stream = reinterpret_cast<cudaStream_t>(stream);
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
    params.block = as_int("block", given.block);
    params.selected = as_int("selected", given.selected);
    params.blocks = static_cast<const std::int32_t*>(readable(given.blocks));
    launch(params, variant, stream);
}

void banded(const Banded& given, Variant variant, std::size_t stream) {
    nsa::Banded params = {};
    fill(params, given.branch);
    params.reach = given.reach == Reach::Window ? nsa::Reach::kWindow : nsa::Reach::kCompressed;
    params.size = as_int("size", given.size);
    launch(params, variant, stream);
}

void gated(const Gated& given, Variant variant, std::size_t stream) {
    nsa::Gated params = {};
    params.type = element_type(given.dtype);
    params.rows = static_cast<std::int64_t>(given.rows);
    params.dim = as_int("dim", given.dim);
    for (int branch = 0; branch < 3; ++branch) {
        params.outputs[branch] = readable(given.outputs[branch]);
        params.gates[branch] = readable(given.gates[branch]);
    }
    params.out = reinterpret_cast<void*>(given.out);
    launch(params, variant, stream);
}

}  // namespace nsa::bridge
