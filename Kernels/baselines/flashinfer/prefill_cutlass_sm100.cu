// FlashInfer's CUTLASS prefill on ragged tensors (TMA, tcgen05): bf16, head size 128, causal;
// sm_100a only.
#include <flashinfer/cutlass_utils.cuh>
// The library's own headers need this order.
#include <algorithm>
#include <flashinfer/attention/blackwell/fmha_cutlass_sm100.cuh>
#include <flashinfer/attention/blackwell/plan.cuh>
#include <stdexcept>
#include <string>

#include "Kernels/baselines/flashinfer/prefill.h"
#include "Kernels/device/launch.h"

namespace fi {
namespace {

constexpr int kHeadDim = 128;
constexpr int kTile = 256;
// What the library's Python code allocates for tile lists.
constexpr std::size_t kMaxTiles = 131072;
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

int longest(const std::vector<std::int32_t>& starts) {
    int most = 0;
    for (std::size_t i = 1; i < starts.size(); ++i)
        most = std::max(most, starts[i] - starts[i - 1]);
    return most;
}

// Tile lists per multiprocessor, which a library kernel builds on the device.
class PrefillCutlass : public Planned {
  public:
    explicit PrefillCutlass(const RaggedPrefill& call)
        : call_(call),
          longest_q_(longest(call.q_starts_on_host)),
          workspace_(kWorkspaceBytes),
          lists_((3 * kMaxTiles + device::multiprocessors() + 1) * sizeof(int)),
          q_starts_(call.q_starts_on_host.size() * sizeof(int)),
          kv_starts_(call.kv_starts_on_host.size() * sizeof(int)) {
        std::size_t tiles = 0;
        for (std::size_t i = 1; i < call.q_starts_on_host.size(); ++i) {
            const int rows = call.q_starts_on_host[i] - call.q_starts_on_host[i - 1];
            tiles += static_cast<std::size_t>((rows + kTile - 1) / kTile) * call.q_heads;
        }
        if (!call.causal) throw std::invalid_argument("only the causal kernel is in this build");
        if (tiles > kMaxTiles) {
            throw std::invalid_argument(std::to_string(tiles) + " tiles; its lists hold " +
                                        std::to_string(kMaxTiles));
        }
        // The planner reads them on the device; the caller's copies may not be filled yet.
        copy(q_starts_, call.q_starts_on_host);
        copy(kv_starts_, call.kv_starts_on_host);
        memory_.run(*this, [&] {
            return flashinfer::plan_kernel_wrapper(
                static_cast<int*>(q_starts_.address()), static_cast<int*>(kv_starts_.address()),
                /*qo_lens=*/nullptr, /*kv_lens=*/nullptr, work_starts(), list(0), list(1), list(2),
                kTile, batch(), static_cast<int>(call.q_heads), device::multiprocessors(),
                call.causal,
                /*enable_pdl=*/true, memory_.scratch->stream);
        });
        kernel = "Sm100FmhaFwdKernelTmaWarpspecialized, 256 x 128";
    }

    void enqueue(cudaStream_t stream) override {
        using T = cutlass::bfloat16_t;
        using Tile = cute::Shape<cute::_256, cute::_128, cute::_128>;
        const auto input = [](const void* address) {
            return static_cast<T*>(const_cast<void*>(address));
        };
        const int q_heads = static_cast<int>(call_.q_heads);
        const int kv_heads = static_cast<int>(call_.kv_heads);
        device::check(
            flashinfer::run_fmha_fwd<T, T, int, Tile, Tile, cutlass::fmha::collective::CausalMask>(
                workspace_.address(), input(call_.q), input(call_.k), input(call_.v),
                starts(call_.q_starts), starts(call_.kv_starts), work_starts(), list(0), list(1),
                list(2), static_cast<T*>(call_.out), /*maybe_lse=*/nullptr, /*mask_mode_code=*/1,
                call_.scale, 1.0, 1.0, 1.0, 1.0, q_heads, kv_heads, kHeadDim, kHeadDim,
                q_heads * kHeadDim, kHeadDim, kv_heads * kHeadDim, kHeadDim, kv_heads * kHeadDim,
                kHeadDim, batch(), call_.q_starts_on_host.back(), call_.kv_starts_on_host.back(),
                longest_q_, stream),
            "FlashInfer's CUTLASS prefill");
    }

  private:
    static void copy(const DeviceMemory& to, const std::vector<std::int32_t>& from) {
        device::check(cudaMemcpy(to.address(), from.data(), to.bytes(), cudaMemcpyHostToDevice),
                      "copy of the starts of requests");
    }
    static int* starts(const std::int32_t* address) { return const_cast<int*>(address); }
    int batch() const { return static_cast<int>(call_.q_starts_on_host.size()) - 1; }
    int* list(std::size_t index) const {
        return static_cast<int*>(lists_.address()) + index * kMaxTiles;
    }
    int* work_starts() const { return list(3); }

    RaggedPrefill call_;
    int longest_q_;
    PlanMemory memory_;
    DeviceMemory workspace_;
    DeviceMemory lists_;
    DeviceMemory q_starts_;
    DeviceMemory kv_starts_;
};

}  // namespace

std::unique_ptr<Planned> plan_prefill_cutlass_bf16_d128(const RaggedPrefill& call) {
    return std::make_unique<PrefillCutlass>(call);
}

}  // namespace fi
