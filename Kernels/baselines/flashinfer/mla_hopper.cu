#include "Kernels/baselines/flashinfer/mla.cuh"
// After it, because it needs the scheduler.
#include <flashinfer/attention/mla_hopper.cuh>

namespace fi {
namespace {

struct Hopper {
    static constexpr const char* kName = "BatchMLAPageAttentionHopper";

    template <flashinfer::MaskMode kMask, class Params>
    static cudaError_t run(Params& params, std::uint32_t x, std::uint32_t y, cudaStream_t stream) {
        return flashinfer::mla::BatchMLAPageAttentionHopper<kMask, kLatent, kRotary>(params, x, y,
                                                                                     stream);
    }
};

}  // namespace

std::unique_ptr<Planned> plan_mla_hopper(const MlaDecode& call) {
    return std::make_unique<MlaPlanned<Hopper>>(call);
}

}  // namespace fi
