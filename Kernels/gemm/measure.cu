#include <algorithm>

#include "Kernels/device/memory.h"
#include "Kernels/gemm/measure.h"

namespace gemm {
namespace {

using device::check;

// Evicts everything else from L2, and leaves nothing there that must be written back.
__global__ void read_all(const uint4* from, std::size_t count, unsigned* to) {
    unsigned all = 0;
    const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += threads) {
        const uint4 part = from[i];
        all |= part.x | part.y | part.z | part.w;
    }
    // Never true, since all of it is zero, but the compiler has to load it.
    if (all != 0) *to = all;
}

class Stopwatch {
  public:
    Stopwatch() {
        int device = 0, cache_bytes = 0;
        check(cudaGetDevice(&device), "cudaGetDevice");
        check(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, device),
              "cudaDeviceGetAttribute");
        memory_ = device::Memory(std::size_t{2} * cache_bytes);
        check(cudaMemset(memory_.start(), 0, memory_.bytes()), "cudaMemset");
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        check(cudaEventCreate(&begin_), "cudaEventCreate");
        check(cudaEventCreate(&end_), "cudaEventCreate");
    }
    ~Stopwatch() {
        // A failure here means that the context is gone, and these with it.
        static_cast<void>(cudaEventDestroy(begin_));
        static_cast<void>(cudaEventDestroy(end_));
        static_cast<void>(cudaStreamDestroy(stream_));
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

    float milliseconds(const Gemm& params, const Config& config) {
        device::Launch shape;
        shape.grid = dim3(1024);
        shape.block = dim3(256);
        const std::size_t count = memory_.bytes() / sizeof(uint4);
        device::launch("read_all", read_all, shape, stream_,
                       static_cast<const uint4*>(memory_.start()), count,
                       static_cast<unsigned*>(memory_.start()));
        check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
        launch(params, config, stream_);
        check(cudaEventRecord(end_, stream_), "cudaEventRecord");
        check(cudaEventSynchronize(end_), "cudaEventSynchronize");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
        return milliseconds;
    }

  private:
    device::Memory memory_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

std::size_t fastest_of(const std::vector<Config>& candidates, const Gemm& params) {
    constexpr std::size_t kRuns = 7;
    constexpr float kLeastGain = 0.01f;  // less is noise
    if (candidates.size() == 1) return 0;
    Stopwatch watch;
    std::vector<std::vector<float>> times(candidates.size());
    // In turns, so that a clock that rises is everybody's. The first runs load the kernels.
    for (std::size_t run = 0; run <= kRuns; ++run) {
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            const float time = watch.milliseconds(params, candidates[i]);
            if (run > 0) times[i].push_back(time);
        }
    }
    std::size_t best = 0;
    float least = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto middle = times[i].begin() + kRuns / 2;
        std::nth_element(times[i].begin(), middle, times[i].end());
        if (i == 0 || *middle < least * (1 - kLeastGain)) {
            best = i;
            least = *middle;
        }
    }
    return best;
}

}  // namespace gemm
