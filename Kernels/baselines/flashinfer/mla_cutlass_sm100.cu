// FlashInfer's CUTLASS kernel for latent attention (cp.async, tcgen05, clusters of two): one query
// per sequence, 128 heads; sm_100a only.
#include <flashinfer/attention/cutlass_mla.cuh>
// After it, because the library's own headers need their order.
#include <chrono>
#include <stdexcept>
#include <string>

#include "Kernels/baselines/flashinfer/mla_cutlass.h"
#include "Kernels/device/launch.h"

namespace fi {
namespace {

using Mla = flashinfer::attention::MlaSm100<cutlass::bfloat16_t>;

void check(cutlass::Status status, const char* what) {
    if (status == cutlass::Status::kSuccess) return;
    throw std::runtime_error(std::string(what) + ": " + cutlassGetStatusString(status));
}

// Rows of pages cover whole tiles of 128 tokens, as the library requires.
std::size_t row_pages(const PageTable& pages) {
    constexpr std::size_t kTile = 128;
    const std::size_t tile_pages = std::max<std::size_t>(1, kTile / pages.page_size);
    const auto needed = static_cast<std::size_t>(longest(pages.indptr_on_host));
    return (needed + tile_pages - 1) / tile_pages * tile_pages;
}

class MlaCutlass : public Planned {
  public:
    explicit MlaCutlass(const JoinedMla& step)
        : rows_(on_device(page_rows(step.pages, row_pages(step.pages)))) {
        const auto start = std::chrono::steady_clock::now();
        const auto input = [](const void* address) { return const_cast<void*>(address); };
        int device = 0;
        device::check(cudaGetDevice(&device), "cudaGetDevice");
        auto arguments = flashinfer::attention::args_from_options<Mla>(
            step.out, /*lse=*/nullptr, input(step.q), input(step.cache), input(step.pages.lengths),
            rows_->address(), static_cast<int>(step.pages.lengths_on_host.size()),
            static_cast<int>(row_pages(step.pages)), static_cast<int>(step.pages.pool_pages),
            static_cast<int>(step.pages.page_size), device);
        // The library hard-codes that of a head of 192.
        arguments.mainloop.softmax_scale = step.scale;
        check(Mla::Fmha::can_implement(arguments), "the shape");
        workspace_ = std::make_unique<DeviceMemory>(
            std::max<std::size_t>(256, Mla::Fmha::get_workspace_size(arguments)));
        check(kernel_.initialize(arguments, workspace_->address(), /*stream=*/nullptr),
              "initialising FlashInfer's CUTLASS kernel");
        device::check(cudaDeviceSynchronize(), "preparing FlashInfer's CUTLASS kernel");
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - start;
        microseconds = took.count();
        kernel = "Sm100FmhaMlaKernelTmaWarpspecialized, split " +
                 std::to_string(kernel_.params().fmha_params.split_kv);
    }

    void enqueue(cudaStream_t stream) override {
        check(kernel_.run(stream), "FlashInfer's CUTLASS kernel");
    }

  private:
    std::unique_ptr<DeviceMemory> rows_;
    std::unique_ptr<DeviceMemory> workspace_;
    Mla::Fmha kernel_;
};

}  // namespace

std::unique_ptr<Planned> plan_mla_cutlass_sm100(const JoinedMla& step) {
    return std::make_unique<MlaCutlass>(step);
}

}  // namespace fi
