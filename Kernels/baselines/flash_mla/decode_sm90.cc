// The library's host code, rewritten without torch: loads its cubins, encodes its tensor maps, and
// launches its three kernels.
#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "Kernels/baselines/flash_mla/decode.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/memory.h"
#include "Kernels/device/tensor_map.h"

namespace flash_mla {
namespace {

// Cubins and the names of the kernels in them, from the wheel.
struct Named {
    const char* label;
    const char* name;
};
constexpr Named kNames[] = {
#define FLASH_MLA_KERNEL(label, name) {#label, name},
#include "flash_mla/kernels.inc"
#undef FLASH_MLA_KERNEL
};

alignas(64) constexpr unsigned char kDecodeCubin[] = {
#include "flash_mla/decode.inc"
};
alignas(64) constexpr unsigned char kCombineCubin[] = {
#include "flash_mla/combine.inc"
};
alignas(64) constexpr unsigned char kScheduleCubin[] = {
#include "flash_mla/schedule.inc"
};

// A loaded cubin; stays loaded, since rows of a run share it.
class Library {
  public:
    Library(const char* what, const unsigned char* code) : what_(what) {
        device::check(
            cudaLibraryLoadData(&library_, code, nullptr, nullptr, 0, nullptr, nullptr, 0), what);
    }

    const void* kernel(const std::string& label) const {
        for (const Named& named : kNames) {
            if (label != named.label) continue;
            cudaKernel_t kernel = nullptr;
            device::check(cudaLibraryGetKernel(&kernel, library_, named.name), what_);
            return reinterpret_cast<const void*>(kernel);
        }
        throw std::logic_error("FlashMLA's wheel has no kernel for " + label);
    }

  private:
    const char* what_;
    cudaLibrary_t library_ = nullptr;
};

const Library& decode_library() {
    static const Library library("FlashMLA's decoding cubin", kDecodeCubin);
    return library;
}

const Library& combine_library() {
    static const Library library("FlashMLA's combining cubin", kCombineCubin);
    return library;
}

const Library& schedule_library() {
    static const Library library("FlashMLA's scheduling cubin", kScheduleCubin);
    return library;
}

void launch(const char* what, const void* kernel, const Launch& shape, void** parameters,
            cudaStream_t stream) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(shape.grid.x, shape.grid.y, shape.grid.z);
    config.blockDim = dim3(shape.threads);
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = shape.overlaps_previous ? 1 : 0;
    device::check(cudaLaunchKernelExC(&config, kernel, parameters), what);
}

void raise_shared_limit(const char* what, const void* kernel, const Launch& shape) {
    device::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shape.shared_bytes)),
                  what);
}

void encode(ShapedMap& shaped, const Boxes& boxes) {
    constexpr cuuint32_t kRank = 4;
    const cuuint32_t steps[kRank] = {1, 1, 1, 1};
    cuuint64_t sizes[kRank];
    cuuint64_t strides[kRank - 1];
    std::copy(std::begin(boxes.sizes), std::end(boxes.sizes), sizes);
    std::copy(std::begin(boxes.strides), std::end(boxes.strides), strides);
    // Not device::tensor_map: the library has the L2 cache fetch 128 bytes.
    CUtensorMap map;
    const CUresult result = device::tensor_map_encoder()(
        &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, kRank, const_cast<void*>(boxes.address), sizes,
        strides, boxes.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) {
        throw std::runtime_error("cuTensorMapEncodeTiled for FlashMLA: error " +
                                 std::to_string(result));
    }
    static_assert(sizeof(map) == sizeof(shaped.map), "a tensor map is 128 bytes");
    std::memcpy(shaped.map, &map, sizeof(map));
}

device::Memory on_device(const std::vector<std::int32_t>& numbers) {
    device::Memory memory(numbers.size() * sizeof(std::int32_t));
    device::check(
        cudaMemcpy(memory.start(), numbers.data(), memory.bytes(), cudaMemcpyHostToDevice),
        "copy of a page table");
    return memory;
}

int table_width(const PageTable& table) {
    int width = 1;
    for (std::size_t i = 0; i + 1 < table.indptr.size(); ++i) {
        width = std::max(width, table.indptr[i + 1] - table.indptr[i]);
    }
    return width;
}

// One row of pages per sequence. The rest of a row is page 0, which exists.
std::vector<std::int32_t> table_rows(const PageTable& table, int width) {
    const std::size_t batch = table.lengths.size();
    std::vector<std::int32_t> rows(batch * width);
    for (std::size_t i = 0; i < batch; ++i) {
        std::copy(table.indices.begin() + table.indptr[i],
                  table.indices.begin() + table.indptr[i + 1],
                  rows.begin() + static_cast<std::ptrdiff_t>(i * width));
    }
    return rows;
}

class Event {
  public:
    Event() { device::check(cudaEventCreate(&event_), "cudaEventCreate"); }
    // A failure here means that the context is gone, and the event with it.
    ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    void record(cudaStream_t stream) const {
        device::check(cudaEventRecord(event_, stream), "cudaEventRecord");
    }

    // Waits for this one.
    double microseconds_since(const Event& start) const {
        device::check(cudaEventSynchronize(event_), "FlashMLA's scheduling kernel");
        float milliseconds = 0;
        device::check(cudaEventElapsedTime(&milliseconds, start.event_, event_),
                      "cudaEventElapsedTime");
        return 1e3 * milliseconds;
    }

  private:
    cudaEvent_t event_ = nullptr;
};

class PlannedSm90 : public Planned {
  public:
    PlannedSm90(const Step& step, const Tensors& tensors, const PageTable& table)
        : step_(step),
          parts_(checked_parts(step)),
          width_(table_width(table)),
          lengths_(on_device(table.lengths)),
          table_(on_device(table_rows(table, width_))),
          lse_(sizeof(float) * step.batch * step.rows()),
          partial_lse_(sizeof(float) * partials(step, parts_) * step.rows()),
          partial_out_(sizeof(float) * partial_elements(step, parts_)),
          schedule_(kScheduleBytes * parts_),
          splits_(sizeof(std::int32_t) * (step.batch + 1)),
          combine_label_("combine_" + std::to_string(most_splits(parts_))),
          decode_kernel_(decode_library().kernel("decode")),
          combine_kernel_(combine_library().kernel(combine_label_)),
          decode_(decode_parameters(step, memory(tensors), parts_)),
          combine_(combine_parameters(step, memory(tensors), parts_)) {
        encode(maps_.q, q_boxes(step, memory(tensors)));
        encode(maps_.cache, cache_boxes(step, memory(tensors)));
        encode(maps_.out, out_boxes(step, memory(tensors)));
        raise_shared_limit("FlashMLA's decoding kernel", decode_kernel_,
                           decode_launch(step, parts_));
        make_schedule(memory(tensors));
        kernel = "flash_fwd_splitkv_mla_kernel, " + std::to_string(parts_) + " parts";
    }

    void enqueue(void* on) const override {
        const auto stream = static_cast<cudaStream_t>(on);
        // The driver copies what these point at.
        void* decode[] = {const_cast<DecodeParameters*>(&decode_), const_cast<DecodeMaps*>(&maps_)};
        launch("FlashMLA's decoding kernel", decode_kernel_, decode_launch(step_, parts_), decode,
               stream);
        void* combine[] = {const_cast<CombineParameters*>(&combine_)};
        launch("FlashMLA's combining kernel", combine_kernel_, combine_launch(step_), combine,
               stream);
    }

  private:
    static int checked_parts(const Step& step) {
        const int count = parts(step, device::multiprocessors());
        device::require(fits(step, count), partial_elements(step, count),
                        " elements of partial results; FlashMLA takes up to 2^31 - 1");
        return count;
    }

    Memory memory(const Tensors& tensors) const {
        return {tensors.q,
                tensors.cache,
                tensors.out,
                static_cast<const std::int32_t*>(lengths_.start()),
                static_cast<const std::int32_t*>(table_.start()),
                width_,
                static_cast<float*>(lse_.start()),
                static_cast<float*>(partial_lse_.start()),
                static_cast<float*>(partial_out_.start()),
                schedule_.start(),
                static_cast<std::int32_t*>(splits_.start())};
    }

    void make_schedule(const Memory& memory) {
        const char* what = "FlashMLA's scheduling kernel";
        const void* kernel = schedule_library().kernel("schedule");
        const Launch shape = schedule_launch(step_);
        raise_shared_limit(what, kernel, shape);
        ScheduleParameters parameters = schedule_parameters(step_, memory, parts_);
        void* pointers[] = {&parameters};
        const Event start;
        const Event end;
        // Twice: the first launch also loads the kernel.
        for (int i = 0; i < 2; ++i) {
            start.record(cudaStreamPerThread);
            launch(what, kernel, shape, pointers, cudaStreamPerThread);
            end.record(cudaStreamPerThread);
            microseconds = end.microseconds_since(start);
        }
    }

    Step step_;
    int parts_;
    int width_;
    device::Memory lengths_;
    device::Memory table_;
    device::Memory lse_;
    device::Memory partial_lse_;
    device::Memory partial_out_;
    device::Memory schedule_;
    device::Memory splits_;
    std::string combine_label_;
    const void* decode_kernel_;
    const void* combine_kernel_;
    DecodeParameters decode_;
    DecodeMaps maps_ = {};
    CombineParameters combine_;
};

}  // namespace

std::unique_ptr<Planned> plan_sm90(const Step& step, const Tensors& tensors,
                                   const PageTable& table) {
    return std::make_unique<PlannedSm90>(step, tensors, table);
}

}  // namespace flash_mla
