#include "Kernels/baselines/quack/bridge.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "Kernels/baselines/quack/archives.h"
#include "Kernels/baselines/quack/lib.rs.h"

namespace quack::bridge {
namespace {

std::string_view view(rust::Str text) { return {text.data(), text.size()}; }

cudaStream_t stream_of(std::size_t stream) { return reinterpret_cast<cudaStream_t>(stream); }

}  // namespace

// A kernel's tensor argument: it reads one member per run-time value of its shape.
static_assert(sizeof(Tensor) == 24,
              "void*, int32_t, padding, int64_t, as in the generated headers");

void Kernel::launch(rust::Slice<const Tensor> tensors, rust::Slice<const std::uint32_t> scalars,
                    std::size_t stream) const {
    std::vector<void*> arguments;
    arguments.reserve(tensors.size() + scalars.size() + 2);
    for (const Tensor& tensor : tensors) arguments.push_back(const_cast<Tensor*>(&tensor));
    for (const std::uint32_t& bits : scalars) {
        arguments.push_back(const_cast<std::uint32_t*>(&bits));
    }
    cute_kernels::launch(*kernel_, std::move(arguments), stream_of(stream));
}

rust::Vec<Artifact> artifacts() {
    rust::Vec<Artifact> found;
    for (const std::int32_t major : {9, 10}) {
        const cute_kernels::Archive& archive = quack::archive(major);
        if (archive.count > 0) found.push_back({major, archive.version, archive.sha256});
    }
    return found;
}

bool has_kernel(std::int32_t major, rust::Str name) {
    return quack::archive(major).find(view(name)) != nullptr;
}

std::unique_ptr<Kernel> load_kernel(std::int32_t major, rust::Str name) {
    const cute_kernels::Kernel* kernel = quack::archive(major).find(view(name));
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

}  // namespace quack::bridge
