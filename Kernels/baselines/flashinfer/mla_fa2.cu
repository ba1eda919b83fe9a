#include "Kernels/baselines/flashinfer/mla.cuh"
// After it, because it needs the scheduler.
#include <flashinfer/attention/mla.cuh>

namespace fi {
namespace {

struct Fa2 {
    static constexpr const char* kName = "BatchMLAPagedAttention (FA2)";

    template <flashinfer::MaskMode kMask, class Params>
    static cudaError_t run(Params& params, std::uint32_t x, std::uint32_t y, cudaStream_t stream) {
        return flashinfer::mla::BatchMLAPagedAttention<kMask, kLatent, kRotary>(params, x, y,
                                                                                stream);
    }
};

}  // namespace

std::unique_ptr<Planned> plan_mla_fa2(const MlaDecode& call) {
    return std::make_unique<MlaPlanned<Fa2>>(call);
}

}  // namespace fi
