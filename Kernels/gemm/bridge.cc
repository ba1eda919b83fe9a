#include "Kernels/gemm/bridge.h"

#include <stdexcept>

#include "Kernels/bridge/convert.h"
#include "Kernels/gemm/gemm.h"
#include "Kernels/gemm/lib.rs.h"

namespace gemm::bridge {
namespace {

using device::narrow;
using device::pointer;

ElementType element_type(Dtype dtype) {
    switch (dtype) {
        case Dtype::Bf16:
            return ElementType::kBf16;
        case Dtype::F16:
            return ElementType::kF16;
        case Dtype::Fp8:
            return ElementType::kFp8;
    }
    throw std::invalid_argument("unknown dtype");
}

gemm::Layout layout(Layout layout) {
    switch (layout) {
        case Layout::Dense:
            return gemm::Layout::kDense;
        case Layout::Contiguous:
            return gemm::Layout::kContiguous;
        case Layout::Masked:
            return gemm::Layout::kMasked;
    }
    throw std::invalid_argument("unknown layout");
}

gemm::Gemm params_of(const Gemm& gemm) {
    gemm::Gemm params = {};
    params.a = pointer<void>(gemm.a);
    params.b = pointer<void>(gemm.b);
    params.out = pointer<void>(gemm.out);
    params.a_scales = pointer<float>(gemm.a_scales);
    params.b_scales = pointer<float>(gemm.b_scales);
    params.index = pointer<std::int32_t>(gemm.index);
    params.shape.rows = narrow("rows", gemm.rows);
    params.shape.n = narrow("n", gemm.n);
    params.shape.k = narrow("k", gemm.k);
    params.shape.groups = narrow("groups", gemm.groups);
    params.shape.type = element_type(gemm.dtype);
    params.shape.layout = layout(gemm.layout);
    params.shape.expected_rows = narrow("expected_rows", gemm.expected_rows);
    return params;
}

Config config(const Shape& shape, Variant variant) {
    return variant == Variant::Portable ? portable_config_of(shape) : config_of(shape);
}

}  // namespace

void check(const Gemm& gemm) { validate(params_of(gemm).shape); }

Choice choice(const Gemm& gemm, Variant variant) {
    if (variant == Variant::Plain) return {"plain", 64, 64, 0, 1, 0};
    const Config chosen = config(params_of(gemm).shape, variant);
    const char* kernel = chosen.kernel == Kernel::kHopper ? "wgmma" : "mma.sync";
    return {kernel,        chosen.tile_rows, chosen.tile_columns,
            chosen.stages, chosen.split,     chosen.blocks};
}

void enqueue(const Gemm& gemm, Variant variant, std::size_t stream) {
    const gemm::Gemm params = params_of(gemm);
    CUstream_st* const given = pointer<CUstream_st>(stream);
    switch (variant) {
        case Variant::Tuned:
            return launch(params, config_of(params.shape), given);
        case Variant::Portable:
            return launch_portable(params, portable_config_of(params.shape), given);
        case Variant::Plain:
            return launch_plain(params, given);
    }
    throw std::invalid_argument("unknown variant");
}

}  // namespace gemm::bridge
