#include "Kernels/mla/bridge.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "Kernels/device/launch.h"
#include "Kernels/mla/lib.rs.h"

namespace mla::bridge {
namespace {

int narrow(const char* name, std::size_t value) {
    if (value > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                                    "; that does not fit in 31 bits");
    }
    return static_cast<int>(value);
}

template <class T>
T* pointer(std::size_t address) {
    return reinterpret_cast<T*>(address);
}

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

PageTable table_of(const Problem& problem, rust::Slice<const std::int32_t> indptr,
                   rust::Slice<const std::int32_t> indices,
                   rust::Slice<const std::int32_t> lengths) {
    if (indptr.size() != problem.batch + 1 || lengths.size() != problem.batch) {
        throw std::invalid_argument("page table: " + std::to_string(indptr.size()) +
                                    " offsets and " + std::to_string(lengths.size()) +
                                    " lengths for a batch of " + std::to_string(problem.batch));
    }
    return {indptr.data(), indices.data(), lengths.data(),
            static_cast<std::int64_t>(indices.size())};
}

// Of the current device.
Machine machine() {
    int device = 0, major = 0;
    device::check(cudaGetDevice(&device), "cudaGetDevice");
    device::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                  "cudaDeviceGetAttribute");
    return {device::multiprocessors(), major == 9};
}

void upload(void* to, const void* from, std::size_t bytes) {
    device::check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy of a plan");
}

}  // namespace

Planned::Planned(const Problem& problem, const Tensors& tensors,
                 rust::Slice<const std::int32_t> indptr, rust::Slice<const std::int32_t> indices,
                 rust::Slice<const std::int32_t> lengths)
    : params_(params_of(problem, tensors)),
      plan_(mla::plan(params_.shape, table_of(problem, indptr, indices, lengths), machine())) {
    const WorkspaceBytes parts = mla::workspace_bytes(plan_);
    bytes_ = parts.total();
    device::check(cudaMalloc(&memory_, bytes_), "cudaMalloc of a plan");
    auto* next = static_cast<std::uint8_t*>(memory_);
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

// A failure here means that the context is gone, and with it the memory.
Planned::~Planned() { static_cast<void>(cudaFree(memory_)); }

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
    validate(shape_of(problem), table_of(problem, indptr, indices, lengths));
}

void enqueue_plain(const Problem& problem, const Tensors& tensors, std::size_t stream) {
    launch_plain(params_of(problem, tensors), pointer<std::int32_t>(tensors.page_indptr),
                 pointer<std::int32_t>(tensors.kv_len), pointer<CUstream_st>(stream));
}

}  // namespace mla::bridge
