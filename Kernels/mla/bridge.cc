#include "Kernels/mla/bridge.h"

#include <stdexcept>
#include <string>

#include "Kernels/bridge/convert.h"
#include "Kernels/device/launch.h"
#include "Kernels/mla/lib.rs.h"

namespace mla::bridge {
namespace {

using device::narrow;
using device::pointer;

Shape shape_of(const Problem& problem) {
    return {narrow("batch", problem.batch), narrow("q_len", problem.q_len),
            narrow("heads", problem.heads), narrow("page_size", problem.page_size),
            narrow("pool_pages", problem.pool_pages)};
}

MlaDecode params_of(const Problem& problem, const Tensors& tensors) {
    MlaDecode params = {};
    params.q = pointer<void>(tensors.q);
    params.cache = pointer<void>(tensors.cache);
    params.pages = pointer<std::int32_t>(tensors.page_indices);
    params.out = pointer<void>(tensors.out);
    params.shape = shape_of(problem);
    params.type = problem.dtype == Dtype::Bf16 ? ElementType::kBf16 : ElementType::kF16;
    params.scale = problem.scale;
    return params;
}

// The current device, as far as the choice may use it.
Machine machine(KernelChoice choice) {
    Machine machine = current_machine();
    if (choice == KernelChoice::Portable) machine.has_wgmma = false;
    return machine;
}

void upload(void* to, const void* from, std::size_t bytes) {
    device::check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy of a plan");
}

}  // namespace

Planned::Planned(const Problem& problem, KernelChoice choice, const Tensors& tensors,
                 rust::Slice<const std::int32_t> indptr, rust::Slice<const std::int32_t> indices,
                 rust::Slice<const std::int32_t> lengths)
    : params_(params_of(problem, tensors)),
      plan_(mla::plan(params_.shape, device::page_table(problem.batch, indptr, indices, lengths),
                      machine(choice))) {
    const WorkspaceBytes parts = mla::workspace_bytes(plan_);
    memory_ = device::Memory(parts.total());
    auto* next = static_cast<std::uint8_t*>(memory_.start());
    auto take = [&next](std::size_t bytes) {
        std::uint8_t* start = next;
        next += bytes;
        return start;
    };
    std::uint8_t* segments = take(parts.segments);
    std::uint8_t* share_begin = take(parts.share_begin);
    std::uint8_t* merges = take(parts.merges);
    workspace_ = {reinterpret_cast<Segment*>(segments),
                  reinterpret_cast<std::int32_t*>(share_begin), reinterpret_cast<Merge*>(merges),
                  reinterpret_cast<float*>(take(parts.partials)),
                  reinterpret_cast<float2*>(take(parts.maxima))};
    upload(segments, plan_.segments.data(), plan_.segments.size() * sizeof(Segment));
    upload(share_begin, plan_.share_begin.data(), plan_.share_begin.size() * sizeof(std::int32_t));
    upload(merges, plan_.merges.data(), plan_.merges.size() * sizeof(Merge));
}

void Planned::enqueue(std::size_t stream) const {
    launch(params_, plan_, workspace_, pointer<CUstream_st>(stream));
}

std::unique_ptr<Planned> plan(const Problem& problem, KernelChoice choice, const Tensors& tensors,
                              rust::Slice<const std::int32_t> indptr,
                              rust::Slice<const std::int32_t> indices,
                              rust::Slice<const std::int32_t> lengths) {
    return std::make_unique<Planned>(problem, choice, tensors, indptr, indices, lengths);
}

bool has_better(const Problem& problem) {
    const Shape shape = shape_of(problem);
    return choose(shape, machine(KernelChoice::Best)).variant !=
           choose(shape, machine(KernelChoice::Portable)).variant;
}

void check_table(const Problem& problem, rust::Slice<const std::int32_t> indptr,
                 rust::Slice<const std::int32_t> indices, rust::Slice<const std::int32_t> lengths) {
    device::validate(device::page_table(problem.batch, indptr, indices, lengths),
                     shape_of(problem).cache());
}

void enqueue_plain(const Problem& problem, const Tensors& tensors, std::size_t stream) {
    launch_plain(params_of(problem, tensors), pointer<std::int32_t>(tensors.page_indptr),
                 pointer<std::int32_t>(tensors.kv_len), pointer<CUstream_st>(stream));
}

}  // namespace mla::bridge
