#include "Kernels/baselines/flash_attention/bridge.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Kernels/baselines/flash_attention/archives.h"
#include "Kernels/baselines/flash_attention/flash_attention_2.h"
#include "Kernels/baselines/flash_attention/lib.rs.h"

namespace flash_attention::bridge {
namespace {

// Tensor arguments as in the generated headers: run-time extents, then run-time strides.
template <int kExtents, int kStrides>
struct Tensor {
    void* data;
    std::int32_t extents[kExtents];
    std::int64_t strides[kStrides];
};

struct Offsets {
    void* data;
    std::int32_t extents[1];
};

void* pointer(std::size_t address) { return reinterpret_cast<void*>(address); }

std::string_view view(rust::Str text) { return {text.data(), text.size()}; }

}  // namespace

void Kernel::launch_varlen(const Attention& attention, std::size_t stream) const {
    const auto tensor = [&](std::size_t address, std::int32_t rows, std::int32_t heads) {
        const std::int64_t width = attention.head_dim;
        return Tensor<2, 2>{pointer(address), {rows, heads}, {heads * width, width}};
    };
    Tensor<2, 2> q = tensor(attention.q, attention.total_q, attention.heads);
    Tensor<2, 2> k = tensor(attention.k, attention.total_kv, attention.kv_heads);
    Tensor<2, 2> v = tensor(attention.v, attention.total_kv, attention.kv_heads);
    Tensor<2, 2> out = tensor(attention.out, attention.total_q, attention.heads);
    Tensor<2, 1> lse = {
        pointer(attention.lse), {attention.heads, attention.total_q}, {attention.total_q}};
    Offsets starts_q = {pointer(attention.starts_q), {attention.batch + 1}};
    Offsets starts_kv = {pointer(attention.starts_kv), {attention.batch + 1}};
    float scale = attention.scale;
    std::int32_t longest_q = attention.longest_q;
    std::vector<void*> arguments = {&q, &k, &v, &out, &lse, &scale, &starts_q, &starts_kv};
    // Kernels for sm_100a have one more argument: their scheduler needs a bound on the lengths.
    constexpr std::int32_t kArgumentsWithBound = 11;
    if (kernel_->argument_count == kArgumentsWithBound) arguments.push_back(&longest_q);
    cute_kernels::launch(*kernel_, std::move(arguments), reinterpret_cast<cudaStream_t>(stream));
}

void Kernel::launch_dense(const Attention& attention, std::size_t stream) const {
    const auto tensor = [&](std::size_t address, std::int32_t rows, std::int32_t heads) {
        const std::int64_t width = attention.head_dim;
        return Tensor<3, 3>{pointer(address),
                            {attention.batch, rows, heads},
                            {rows * heads * width, heads * width, width}};
    };
    const std::int32_t rows_q = attention.longest_q;
    const std::int32_t rows_kv = attention.longest_kv;
    Tensor<3, 3> q = tensor(attention.q, rows_q, attention.heads);
    Tensor<3, 3> k = tensor(attention.k, rows_kv, attention.kv_heads);
    Tensor<3, 3> v = tensor(attention.v, rows_kv, attention.kv_heads);
    Tensor<3, 3> out = tensor(attention.out, rows_q, attention.heads);
    Tensor<3, 2> lse = {pointer(attention.lse),
                        {attention.batch, attention.heads, rows_q},
                        {std::int64_t{attention.heads} * rows_q, rows_q}};
    float scale = attention.scale;
    cute_kernels::launch(*kernel_, {&q, &k, &v, &out, &lse, &scale},
                         reinterpret_cast<cudaStream_t>(stream));
}

rust::Vec<Artifact> artifacts() {
    rust::Vec<Artifact> found;
    for (const std::int32_t major : {9, 10}) {
        const cute_kernels::Archive& archive = flash_attention::archive(major);
        if (archive.count > 0) found.push_back({major, archive.version, archive.sha256});
    }
    return found;
}

bool has_kernel(std::int32_t major, rust::Str name) {
    return flash_attention::archive(major).find(view(name)) != nullptr;
}

std::unique_ptr<Kernel> load_kernel(std::int32_t major, rust::Str name) {
    const cute_kernels::Kernel* kernel = flash_attention::archive(major).find(view(name));
    if (kernel == nullptr) {
        throw std::invalid_argument(std::string(name) + ": no such kernel for devices of compute " +
                                    "capability " + std::to_string(major) + ".x");
    }
    return std::make_unique<Kernel>(*kernel);
}

std::unique_ptr<Kernel> load_opened(rust::Str name, std::size_t init, std::size_t load,
                                    std::size_t entry, std::int32_t argument_count) {
    return std::make_unique<Kernel>(
        cute_kernels::opened(view(name), init, load, entry, argument_count));
}

void launch_flash_attention_2(const Attention& attention, bool dense, std::size_t stream) {
    FlashAttention2 params = {};
    params.q = pointer(attention.q);
    params.k = pointer(attention.k);
    params.v = pointer(attention.v);
    params.out = pointer(attention.out);
    params.lse = static_cast<float*>(pointer(attention.lse));
    if (!dense) {
        params.starts_q = static_cast<const int*>(pointer(attention.starts_q));
        params.starts_kv = static_cast<const int*>(pointer(attention.starts_kv));
    }
    params.batch = attention.batch;
    params.total_q = attention.total_q;
    params.longest_q = attention.longest_q;
    params.longest_kv = attention.longest_kv;
    params.heads = attention.heads;
    params.kv_heads = attention.kv_heads;
    params.head_dim = attention.head_dim;
    params.causal = attention.causal;
    params.scale = attention.scale;
    flash_attention::launch(params, reinterpret_cast<cudaStream_t>(stream));
}

std::unique_ptr<Workspace> allocate_workspace(std::size_t bytes) {
    return std::make_unique<Workspace>(bytes);
}

}  // namespace flash_attention::bridge
