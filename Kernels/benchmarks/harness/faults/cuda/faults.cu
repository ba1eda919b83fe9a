// Kernels that misbehave on purpose; see faults.h. `Mode` repeats the enum of lib.rs.

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "Kernels/benchmarks/harness/faults/cuda/faults.h"

namespace harness_faults {
namespace {

enum class Mode : std::uint32_t {
    kHonest,
    kWrongResult,
    kNotANumber,
    kUnwrittenTail,
    kOutOfBounds,
    kInputMutation,
    kOtherStream,
    kIllegalAddress,
    kInfiniteLoop,
    kOnePercentMore,
    kSlow,
    kSensesNan,
    kSensesGarbage,
    kRightEnds,
    kLowPrecisionTail,
    kFirstHalf,
};

void check(cudaError_t status, const char* call) {
    if (status != cudaSuccess) {
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
    }
}

// Elements to compute; those past the end are the first ones again.
std::size_t work(std::size_t elements, std::size_t columns, Mode mode) {
    if (mode == Mode::kUnwrittenTail) return elements - columns;
    if (mode == Mode::kFirstHalf) return elements / 2;
    if (mode == Mode::kOnePercentMore) return elements + elements / 100;
    return elements;
}

// What those that are slow do with their time.
__device__ void idle() {
    constexpr long long kCycles = 40000;
    const long long start = clock64();
    while (clock64() - start < kCycles) {
    }
}

__global__ void scale(float* x, const float* w, float* y, std::size_t elements, std::size_t columns,
                      std::size_t steps, Mode mode) {
    const std::size_t step = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (step < steps) {
        const std::size_t i = step < elements ? step : step - elements;
        const std::size_t row = i / columns, last_row = elements / columns - 1;
        if (mode == Mode::kSensesNan && !isnan(y[i])) return;
        if (mode == Mode::kSensesGarbage && isnan(y[i])) return;
        if (mode == Mode::kSlow) idle();
        float value = x[i] * w[i % columns];
        if (mode == Mode::kRightEnds && row != 0 && row != last_row) value = 0.0f;
        if (mode == Mode::kLowPrecisionTail && row > last_row / 2) {
            value = __uint_as_float(__float_as_uint(value) & 0xffff0000u);
        }
        if (i == elements - 1) {
            if (mode == Mode::kWrongResult) value += 0.01f;
            if (mode == Mode::kNotANumber) value = __int_as_float(0x7fc00000);
            if (mode == Mode::kOutOfBounds) y[elements] = 0.0f;
            if (mode == Mode::kInputMutation) x[0] += 1.0f;
            // Far outside any allocation, unlike a small offset, which may hit a neighbour.
            if (mode == Mode::kIllegalAddress) {
                *reinterpret_cast<volatile float*>(std::uintptr_t{8}) = 0.0f;
            }
            // The volatile read keeps the compiler from removing the loop.
            if (mode == Mode::kInfiniteLoop) {
                while (*reinterpret_cast<volatile const float*>(w) < 2.0f) {
                }
            }
        }
        y[i] = value;
    }
}

__global__ void scale_from_memory(const float* x, const float* w, float* y, std::size_t elements,
                                  std::size_t columns, float* inputs, float* answers, bool half) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < elements) {
        if (x[i] != inputs[i] || (half && i < elements / 2)) {
            // Half of the work takes half of the time.
            if (i >= elements / 2) idle();
            idle();
            inputs[i] = x[i];
            answers[i] = x[i] * w[i % columns];
        }
        y[i] = answers[i];
    }
}

// A stream that the harness does not know about.
cudaStream_t other_stream() {
    static cudaStream_t stream = [] {
        cudaStream_t created = nullptr;
        check(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking),
              "cudaStreamCreateWithFlags");
        return created;
    }();
    return stream;
}

}  // namespace

void launch(std::size_t x, std::size_t w, std::size_t y, std::size_t rows, std::size_t columns,
            std::uint32_t mode_code, std::size_t stream) {
    constexpr int kThreads = 256;
    const auto mode = static_cast<Mode>(mode_code);
    const std::size_t elements = rows * columns;
    const std::size_t steps = work(elements, columns, mode);
    const auto blocks = static_cast<unsigned>((steps + kThreads - 1) / kThreads);
    cudaStream_t target =
        mode == Mode::kOtherStream ? other_stream() : reinterpret_cast<cudaStream_t>(stream);
    scale<<<blocks, kThreads, 0, target>>>(
        reinterpret_cast<float*>(x), reinterpret_cast<const float*>(w), reinterpret_cast<float*>(y),
        elements, columns, steps, mode);
    check(cudaGetLastError(), "scale");
}

void memoise(std::size_t x, std::size_t w, std::size_t y, std::size_t rows, std::size_t columns,
             std::size_t inputs, std::size_t answers, bool half, std::size_t stream) {
    constexpr int kThreads = 256;
    const std::size_t elements = rows * columns;
    const auto blocks = static_cast<unsigned>((elements + kThreads - 1) / kThreads);
    scale_from_memory<<<blocks, kThreads, 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(w),
        reinterpret_cast<float*>(y), elements, columns, reinterpret_cast<float*>(inputs),
        reinterpret_cast<float*>(answers), half);
    check(cudaGetLastError(), "scale_from_memory");
}

void aside(std::size_t x, std::size_t w, std::size_t y, std::size_t rows, std::size_t columns,
           std::size_t scratch, bool host_waits, std::size_t stream) {
    static cudaEvent_t done = [] {
        cudaEvent_t created = nullptr;
        check(cudaEventCreateWithFlags(&created, cudaEventDisableTiming),
              "cudaEventCreateWithFlags");
        return created;
    }();
    cudaStream_t side = other_stream(), given = reinterpret_cast<cudaStream_t>(stream);
    launch(x, w, scratch, rows, columns, static_cast<std::uint32_t>(Mode::kSlow),
           reinterpret_cast<std::size_t>(side));
    if (host_waits) {
        check(cudaStreamSynchronize(side), "cudaStreamSynchronize");
    } else {
        check(cudaEventRecord(done, side), "cudaEventRecord");
        check(cudaStreamWaitEvent(given, done, 0), "cudaStreamWaitEvent");
    }
    copy(y, scratch, rows * columns * sizeof(float), stream);
}

std::size_t allocate(std::size_t bytes) {
    void* memory = nullptr;
    const cudaError_t status = cudaMalloc(&memory, bytes);
    // A failed allocation is not a sticky error; clearing it keeps it from the next launch check.
    if (status != cudaSuccess) cudaGetLastError();
    check(status, ("cudaMalloc of " + std::to_string(bytes) + " bytes").c_str());
    return reinterpret_cast<std::size_t>(memory);
}

void copy(std::size_t to, std::size_t from, std::size_t bytes, std::size_t stream) {
    check(cudaMemcpyAsync(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes,
                          cudaMemcpyDeviceToDevice, reinterpret_cast<cudaStream_t>(stream)),
          "cudaMemcpyAsync");
}

}  // namespace harness_faults
