// The peak of Blackwell's tensor cores: one thread per SM multiplies tiles in shared memory into
// two sets of sums in tensor memory, which take turns. Operands differ from slice to slice, as for
// Hopper (math.cu).
//
// NVFP4: the scales, all 1, take the place of the second set, and are copied there once.

#include <string>
#include <type_traits>

#include "Kernels/benchmarks/harness/roofline/cuda/kernels.h"
#include "Kernels/bridge/convert.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/machine.h"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/registers.cuh"
#include "Kernels/device/ptx/tcgen05.cuh"
#include "Kernels/device/scale_tiles.h"

namespace roofline {
namespace {

using device::check;
using device::pointer;
namespace ptx = device::ptx;

constexpr int kRows = 128;
constexpr int kColumns = 256;
constexpr int kDepthBytes = 32;  // of one instruction
constexpr int kSlices = 4;
constexpr int kUnroll = 4;
constexpr int kThreads = 128;
constexpr int kTensorColumns = 512;

// Pairs of e2m1 with e4m3 scales.
struct Nvfp4 {};

template <class T>
constexpr bool kScaled = std::is_same_v<T, Nvfp4>;
template <class T>
constexpr int kSums = kScaled<T> ? 1 : 2;

// An instruction's scales, four per row: a tile of a, and two of b.
constexpr int kScaleTiles = (kRows + kColumns) / device::kScaleTileRows;
constexpr int kScaleTileWidth = 4;  // columns of tensor memory
static_assert(kSums<Nvfp4> * kColumns + kScaleTiles * kScaleTileWidth <= kTensorColumns);

struct alignas(128) Operands {
    uint8_t a[kSlices][kRows * kDepthBytes];
    uint8_t b[kSlices][kColumns * kDepthBytes];
};

template <bool kHasScales>
struct Scales {};
template <>
struct Scales<true> {
    alignas(128) uint8_t scales[kScaleTiles][device::kScaleTileBytes];
};

template <class T>
struct SharedStorage : Scales<kScaled<T>> {
    Operands operands;
    std::uint64_t done[2];  // of every other step
    std::uint32_t tensor_memory;
};

// One instruction.
template <class T>
__device__ __forceinline__ void multiply_once(std::uint32_t sums, std::uint32_t scales, uint64_t a,
                                              uint64_t b, bool add) {
    if constexpr (kScaled<T>) {
        constexpr auto kKind = ptx::ScaledKind::kNvf4;
        constexpr std::uint32_t kProduct = ptx::tensor_scaled_product<kKind>(kRows, kColumns);
        ptx::tensor_multiply_scaled<kKind, 1>(sums, a, b, kProduct, scales,
                                              scales + kScaleTileWidth, add);
    } else {
        constexpr std::uint32_t kProduct = ptx::tensor_product<T>(kRows, kColumns);
        ptx::tensor_multiply<T, 1>(sums, a, b, kProduct, add);
    }
}

// At most two steps are in flight, and none at the end.
template <class T>
__device__ void multiply(SharedStorage<T>& shared, std::uint32_t sums, uint32_t steps) {
    const std::uint32_t scales = sums + kSums<T> * kColumns;
    if constexpr (kScaled<T>) {
        for (int tile = 0; tile < kScaleTiles; ++tile) {
            ptx::tensor_copy_scales<1>(
                scales + tile * kScaleTileWidth,
                ptx::tensor_scale_tile(ptx::shared_address(shared.scales[tile])));
        }
    }
    uint64_t a[kSlices];
    uint64_t b[kSlices];
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
        const Operands& tiles = shared.operands;
        a[slice] = ptx::tensor_core_matrix_operand(ptx::shared_address(tiles.a[slice]), kRows);
        b[slice] = ptx::tensor_core_matrix_operand(ptx::shared_address(tiles.b[slice]), kColumns);
    }
    for (uint32_t step = 0; step < steps; ++step) {
        // The phase before the first counts as complete.
        ptx::mbarrier_wait(&shared.done[step % 2], (step / 2 + 1) % 2);
#pragma unroll
        for (int i = 0; i < kSlices * kUnroll; ++i) {
            multiply_once<T>(sums + i % kSums<T> * kColumns, scales, a[i % kSlices], b[i % kSlices],
                             step > 0 || i >= kSums<T>);
        }
        ptx::tensor_commit<1>(&shared.done[step % 2]);
    }
    // The products of a thread complete in order.
    ptx::mbarrier_wait(&shared.done[(steps - 1) % 2], (steps - 1) / 2 % 2);
}

template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    tensor_memory_kernel(const uint4* operands, float* out, uint32_t steps) {
    extern __shared__ __align__(128) uint8_t bytes[];
    auto& shared = *reinterpret_cast<SharedStorage<T>*>(bytes);
    for (int i = threadIdx.x; i < sizeof(Operands) / sizeof(uint4); i += blockDim.x) {
        reinterpret_cast<uint4*>(&shared.operands)[i] = operands[i];
    }
    if constexpr (kScaled<T>) {
        constexpr uint32_t kOnes = 0x38383838;
        constexpr int kWords = sizeof(shared.scales) / sizeof(uint32_t);
        static_assert(kWords % kThreads == 0);
        auto* words = reinterpret_cast<uint32_t*>(shared.scales);
#pragma unroll
        for (int i = 0; i < kWords; i += kThreads) words[i + threadIdx.x] = kOnes;
    }
    if (threadIdx.x < 32) {
        ptx::tensor_memory_allocate<1>(&shared.tensor_memory, kTensorColumns);
        ptx::tensor_memory_relinquish<1>();
    }
    if (threadIdx.x == 0) {
        for (std::uint64_t& done : shared.done) ptx::mbarrier_init(&done, 1);
        ptx::fence_mbarrier_init();
    }
    // The tensor cores read ordinary stores through the async proxy, which needs its own fence.
    ptx::fence_async_proxy();
    ptx::tensor_fence_before_sync();
    __syncthreads();  // operands, barriers and the address are there
    ptx::tensor_fence_after_sync();
    const std::uint32_t sums = shared.tensor_memory;
    if (threadIdx.x == 0) multiply<T>(shared, sums, steps);
    __syncwarp();
    ptx::tensor_fence_before_sync();
    __syncthreads();  // the sums are complete
    ptx::tensor_fence_after_sync();
    const std::uint32_t lanes = sums + (threadIdx.x / 32 * 32 << 16);
    float sum = 0;
    for (int column = 0; column < kSums<T> * kColumns; column += 32) {
        std::uint32_t words[32];
        ptx::tensor_load(words, lanes + column);
        ptx::tensor_wait_for_loads();
        ptx::pin(words);
        for (int i = 0; i < 32; ++i) sum += __uint_as_float(words[i]);
    }
    out[static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
    ptx::tensor_fence_before_sync();
    __syncthreads();  // nobody reads tensor memory any more
    ptx::tensor_fence_after_sync();
    if (threadIdx.x < 32) ptx::tensor_memory_free<1>(sums, kTensorColumns);
}

template <class T>
void launch(uint32_t blocks, uint32_t steps, size_t operands, size_t out, size_t stream) {
    auto* kernel = tensor_memory_kernel<T>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               sizeof(SharedStorage<T>)),
          "tensor_memory_steps: shared memory");
    kernel<<<blocks, kThreads, sizeof(SharedStorage<T>), pointer<CUstream_st>(stream)>>>(
        pointer<uint4>(operands), pointer<float>(out), steps);
    check(cudaGetLastError(), "tensor_memory_steps");
}

// tcgen05 exists only there; elsewhere the kernel traps.
void require_blackwell() {
    if (device::current_machine().arch != device::Arch::kBlackwell) {
        throw std::runtime_error("tensor memory exists on compute capability 10.0 only");
    }
}

}  // namespace

size_t tensor_memory_operand_bytes() { return sizeof(Operands); }

uint64_t tensor_memory_flops_per_step(uint32_t type) {
    const uint64_t depth = type == kNvfp4    ? 2 * kDepthBytes
                           : type == kF8E4M3 ? kDepthBytes
                                             : kDepthBytes / 2;
    return 2ull * kRows * kColumns * depth * kSlices * kUnroll;
}

void tensor_memory_steps(uint32_t type, uint32_t blocks, uint32_t steps, size_t operands,
                         size_t out, size_t stream) {
    require_blackwell();
    if (steps < 1) throw std::runtime_error("tensor_memory_steps: no steps");
    switch (type) {
        case kBf16:
            return launch<__nv_bfloat16>(blocks, steps, operands, out, stream);
        case kF16:
            return launch<__half>(blocks, steps, operands, out, stream);
        case kF8E4M3:
            return launch<__nv_fp8_e4m3>(blocks, steps, operands, out, stream);
        case kNvfp4:
            return launch<Nvfp4>(blocks, steps, operands, out, stream);
    }
    throw std::runtime_error("tensor_memory_steps: no element type " + std::to_string(type));
}

}  // namespace roofline
