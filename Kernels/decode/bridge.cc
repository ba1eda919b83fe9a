#include "Kernels/decode/bridge.h"

#include <stdexcept>
#include <string>

#include "Kernels/bridge/convert.h"
#include "Kernels/decode/lib.rs.h"
#include "Kernels/device/launch.h"

namespace decode::bridge {
namespace {

using device::narrow;
using device::pointer;

Shape shape_of(const Problem& problem) {
    return {narrow("batch", problem.batch),           narrow("q_len", problem.q_len),
            narrow("heads", problem.heads),           narrow("kv_heads", problem.kv_heads),
            narrow("head_dim", problem.head_dim),     narrow("page_size", problem.page_size),
            narrow("pool_pages", problem.pool_pages), problem.fp8_cache ? 1 : 2};
}

Decode params_of(const Problem& problem, const Tensors& tensors) {
    Decode params = {};
    params.q = pointer<void>(tensors.q);
    params.k_pages = pointer<void>(tensors.k_pages);
    params.v_pages = pointer<void>(tensors.v_pages);
    params.pages = pointer<std::int32_t>(tensors.page_indices);
    params.out = pointer<void>(tensors.out);
    params.shape = shape_of(problem);
    params.head_major = problem.head_major;
    params.type = problem.dtype == Dtype::Bf16 ? ElementType::kBf16 : ElementType::kF16;
    params.scale = problem.scale;
    params.value_scale = problem.value_scale;
    return params;
}

void upload(void* to, const void* from, std::size_t bytes) {
    device::check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy of a plan");
}

}  // namespace

Planned::Planned(const Problem& problem, const Tensors& tensors,
                 rust::Slice<const std::int32_t> indptr, rust::Slice<const std::int32_t> indices,
                 rust::Slice<const std::int32_t> lengths)
    : params_(params_of(problem, tensors)),
      plan_(decode::plan(params_.shape, device::page_table(problem.batch, indptr, indices, lengths),
                         device::multiprocessors())) {
    const WorkspaceBytes parts = decode::workspace_bytes(plan_, params_.shape);
    memory_ = device::Memory(parts.total());
    auto* next = static_cast<std::uint8_t*>(memory_.start());
    auto take = [&next](std::size_t bytes) {
        std::uint8_t* start = next;
        next += bytes;
        return start;
    };
    std::uint8_t* segments = take(parts.segments);
    std::uint8_t* counters = take(parts.counters);
    workspace_ = {reinterpret_cast<Segment*>(segments), reinterpret_cast<std::int32_t*>(counters),
                  reinterpret_cast<float*>(take(parts.partials)),
                  reinterpret_cast<float2*>(take(parts.maxima))};
    upload(segments, plan_.segments.data(), plan_.segments.size() * sizeof(Segment));
    device::check(cudaMemset(counters, 0, parts.counters), "cudaMemset of counters");
    // The counters are 0 before anybody's stream uses them.
    device::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize after a plan");
}

void Planned::enqueue(std::size_t stream) const {
    launch(params_, plan_, workspace_, pointer<CUstream_st>(stream));
}

std::unique_ptr<Planned> plan(const Problem& problem, const Tensors& tensors,
                              rust::Slice<const std::int32_t> indptr,
                              rust::Slice<const std::int32_t> indices,
                              rust::Slice<const std::int32_t> lengths) {
    return std::make_unique<Planned>(problem, tensors, indptr, indices, lengths);
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

}  // namespace decode::bridge
