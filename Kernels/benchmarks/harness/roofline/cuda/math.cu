// Arithmetic peaks: fp32 on the ordinary units, bf16, fp16 and fp8 on the tensor cores.
//
// Tensor cores: each warpgroup accumulates the products of kSlices different pairs of operand tiles
// into one 64 x 256 accumulator, kUnroll times per step. Operands are real values, loaded once into
// shared memory and different from slice to slice, because bit toggling determines the power and
// thus the clock.

#include <string>

#include "Kernels/benchmarks/harness/roofline/cuda/kernels.h"
#include "Kernels/bridge/convert.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/machine.h"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/wgmma.cuh"

namespace roofline {
namespace {

using device::check;
using device::pointer;
namespace ptx = device::ptx;

// Independent chains per thread: more than the units' latency times their issue rate.
constexpr int kChains = 16;
constexpr int kFmaUnroll = 8;

__global__ void fp32_kernel(const float* operands, float* out, uint32_t steps) {
    float scale = operands[0];
    float shift = operands[1];
    float values[kChains];
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) values[chain] = shift * (threadIdx.x + chain);
    for (uint32_t step = 0; step < steps; ++step) {
#pragma unroll
        for (int repeat = 0; repeat < kFmaUnroll; ++repeat) {
#pragma unroll
            for (int chain = 0; chain < kChains; ++chain) {
                values[chain] = fmaf(values[chain], scale, shift);
            }
        }
    }
    float sum = 0;
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) sum += values[chain];
    out[static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

constexpr int kRows = 64;                                               // of A, per warpgroup
constexpr int kColumns = 256;                                           // of B
constexpr int kDepthBytes = 32;                                         // of one instruction
[[maybe_unused]] constexpr int kAccumulators = kRows * kColumns / 128;  // per thread
constexpr int kSlices = 4;
constexpr int kUnroll = 4;
constexpr int kWarpgroupThreads = 128;
constexpr int kMaxWarpgroups = 3;

struct alignas(128) Operands {
    uint8_t b[kSlices][kColumns * kDepthBytes];
    uint8_t a[kMaxWarpgroups][kSlices][kRows * kDepthBytes];
};
static_assert(sizeof(Operands) <= 227 * 1024, "the operands must fit one block's shared memory");

template <class T>
__global__ void __launch_bounds__(kMaxWarpgroups* kWarpgroupThreads, 1)
    tensor_kernel(const uint4* operands, float* out, uint32_t steps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ __align__(128) uint8_t shared[];
    Operands& tiles = *reinterpret_cast<Operands*>(shared);
    for (int i = threadIdx.x; i < sizeof(Operands) / sizeof(uint4); i += blockDim.x) {
        reinterpret_cast<uint4*>(shared)[i] = operands[i];
    }
    // The tensor cores read ordinary stores through the async proxy, which needs its own fence.
    ptx::fence_async_proxy();
    __syncthreads();  // all operands have arrived

    int warpgroup = threadIdx.x / kWarpgroupThreads;
    uint64_t a[kSlices];
    uint64_t b[kSlices];
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
        a[slice] = ptx::core_matrix_operand(ptx::shared_address(tiles.a[warpgroup][slice]), kRows);
        b[slice] = ptx::core_matrix_operand(ptx::shared_address(tiles.b[slice]), kColumns);
    }
    float d[kAccumulators] = {};
    for (uint32_t step = 0; step < steps; ++step) {
        ptx::wgmma_fence();
#pragma unroll
        for (int i = 0; i < kSlices * kUnroll; ++i) {
            ptx::wgmma<T>(d, a[i % kSlices], b[i % kSlices], 1);
        }
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) sum += d[i];
    out[static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
#endif
}

template <class T>
void launch_tensor(uint32_t blocks, uint32_t warpgroups, uint32_t steps, size_t operands,
                   size_t out, size_t stream) {
    auto* kernel = tensor_kernel<T>;
    check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Operands)),
        "tensor_steps: shared memory");
    kernel<<<blocks, warpgroups * kWarpgroupThreads, sizeof(Operands),
             pointer<CUstream_st>(stream)>>>(pointer<uint4>(operands), pointer<float>(out), steps);
    check(cudaGetLastError(), "tensor_steps");
}

// wgmma exists only on Hopper; a kernel without it would look infinitely fast.
void require_hopper() {
    if (device::current_machine().arch != device::Arch::kHopper) {
        throw std::runtime_error(
            "this tensor-core peak is measured on compute capability 9.0 only");
    }
}

}  // namespace

uint64_t fp32_flops_per_step() { return 2ull * kChains * kFmaUnroll; }

void fp32_steps(uint32_t blocks, uint32_t threads, uint32_t steps, size_t operands, size_t out,
                size_t stream) {
    fp32_kernel<<<blocks, threads, 0, pointer<CUstream_st>(stream)>>>(pointer<float>(operands),
                                                                      pointer<float>(out), steps);
    check(cudaGetLastError(), "fp32_steps");
}

size_t tensor_operand_bytes() { return sizeof(Operands); }

uint64_t tensor_flops_per_step(uint32_t type) {
    uint64_t depth = type == kF8E4M3 ? kDepthBytes : kDepthBytes / 2;
    return 2ull * kRows * kColumns * depth * kSlices * kUnroll;
}

void tensor_steps(uint32_t type, uint32_t blocks, uint32_t warpgroups, uint32_t steps,
                  size_t operands, size_t out, size_t stream) {
    require_hopper();
    if (warpgroups < 1 || warpgroups > kMaxWarpgroups) {
        throw std::runtime_error("tensor_steps: " + std::to_string(warpgroups) + " warpgroups");
    }
    switch (type) {
        case kBf16:
            return launch_tensor<__nv_bfloat16>(blocks, warpgroups, steps, operands, out, stream);
        case kF16:
            return launch_tensor<__half>(blocks, warpgroups, steps, operands, out, stream);
        case kF8E4M3:
            return launch_tensor<__nv_fp8_e4m3>(blocks, warpgroups, steps, operands, out, stream);
    }
    throw std::runtime_error("tensor_steps: no element type " + std::to_string(type));
}

}  // namespace roofline
