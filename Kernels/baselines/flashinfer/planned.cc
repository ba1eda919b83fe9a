#include "Kernels/baselines/flashinfer/planned.h"

#include <chrono>

#include "Kernels/device/launch.h"

namespace fi {
namespace {

// Four times what the library's documentation recommends, because short batches with many heads and
// several queries per sequence need more; and the library's own limit for the schedule.
constexpr std::size_t kPartialBytes = std::size_t{512} << 20;
constexpr std::size_t kScheduleBytes = std::size_t{8} << 20;

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
    device::check(cudaMalloc(&address_, bytes), "cudaMalloc of a FlashInfer workspace");
}

// A failure here means that the context is gone, and with it the memory.
DeviceMemory::~DeviceMemory() { static_cast<void>(cudaFree(address_)); }

std::shared_ptr<Scratch> Scratch::shared() {
    static std::weak_ptr<Scratch> kept;
    std::shared_ptr<Scratch> scratch = kept.lock();
    if (!scratch) {
        scratch = std::make_shared<Scratch>();
        kept = scratch;
    }
    return scratch;
}

Scratch::Scratch() : partials(kPartialBytes), pinned_bytes(kScheduleBytes) {
    device::check(cudaMallocHost(&pinned, pinned_bytes), "cudaMallocHost of a FlashInfer plan");
    const cudaError_t status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (status != cudaSuccess) {
        static_cast<void>(cudaFreeHost(pinned));
        device::check(status, "cudaStreamCreateWithFlags");
    }
}

Scratch::~Scratch() {
    static_cast<void>(cudaStreamDestroy(stream));
    static_cast<void>(cudaFreeHost(pinned));
}

PlanMemory::PlanMemory() : scratch(Scratch::shared()), schedule(kScheduleBytes) {}

void PlanMemory::finish(Planned& planned, cudaError_t status, double microseconds) {
    device::check(status, "FlashInfer's planner");
    planned.microseconds = microseconds;
    device::check(cudaStreamSynchronize(scratch->stream), "copy of FlashInfer's plan");
}

double PlanMemory::now() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(since).count();
}

}  // namespace fi
