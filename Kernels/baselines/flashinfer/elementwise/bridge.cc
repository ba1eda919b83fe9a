#include "Kernels/baselines/flashinfer/elementwise/bridge.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/baselines/flashinfer/elementwise/lib.rs.h"
#include "Kernels/bridge/convert.h"

namespace fi::elementwise {
namespace {

using device::pointer;

fi::Gate gate_of(Gate gate) {
    switch (gate) {
        case Gate::Silu:
            return fi::Gate::kSilu;
        case Gate::GeluTanh:
            return fi::Gate::kGeluTanh;
        case Gate::Gelu:
            return fi::Gate::kGelu;
    }
    throw std::invalid_argument("unknown gate");
}

Type type(Dtype dtype) {
    switch (dtype) {
        case Dtype::F16:
            return Type::kF16;
        case Dtype::Bf16:
            return Type::kBf16;
    }
    throw std::invalid_argument("unknown dtype");
}

}  // namespace

void norm(const Norm& given, std::size_t stream) {
    // The kernels compute row times width in 32 bits.
    if (given.columns == 0 || given.rows > (std::size_t{1} << 32) / given.columns) {
        throw std::invalid_argument(std::to_string(given.rows) + " x " +
                                    std::to_string(given.columns) +
                                    " elements; FlashInfer's offsets are 32-bit");
    }
    fi::Norm params = {};
    params.op = given.op;
    params.type = type(given.dtype);
    params.rows = static_cast<std::uint32_t>(given.rows);
    params.columns = static_cast<std::uint32_t>(given.columns);
    params.epsilon = given.epsilon;
    params.x = pointer<void>(given.x);
    params.residual = pointer<void>(given.residual);
    params.weight = pointer<void>(given.weight);
    params.bias = pointer<void>(given.bias);
    params.out = pointer<void>(given.out);
    fi::launch(params, pointer<CUstream_st>(stream));
}

void act_and_mul(const ActAndMul& given, std::size_t stream) {
    constexpr std::size_t kMost = std::numeric_limits<int>::max();
    if (given.columns % 8 != 0 || given.columns == 0 || given.columns > kMost || given.rows == 0 ||
        given.rows > kMost) {
        throw std::invalid_argument(std::to_string(given.rows) + " x " +
                                    std::to_string(given.columns) +
                                    " elements; FlashInfer needs columns in multiples of 8");
    }
    fi::ActAndMul params = {};
    params.gate = gate_of(given.gate);
    params.input = pointer<void>(given.input);
    params.out = pointer<void>(given.out);
    params.rows = static_cast<std::int64_t>(given.rows);
    params.columns = static_cast<int>(given.columns);
    fi::launch(params, pointer<CUstream_st>(stream));
}

std::unique_ptr<RopeTables> rope_tables(std::size_t cos, std::size_t sin, std::uint32_t sequence,
                                        std::uint32_t dim, std::uint32_t tokens) {
    return std::make_unique<RopeTables>(pointer<float>(cos), pointer<float>(sin), sequence, dim,
                                        tokens);
}

void rope(const Rope& given, const RopeTables& tables, std::size_t stream) {
    fi::Rope params = {};
    params.queries = pointer<void>(given.queries);
    params.keys = pointer<void>(given.keys);
    params.tokens = given.tokens;
    params.query_heads = given.query_heads;
    params.key_heads = given.key_heads;
    params.dim = given.dim;
    params.interleaved = given.interleaved;
    fi::launch(params, tables, pointer<CUstream_st>(stream));
}

}  // namespace fi::elementwise
