// Registers: a warpgroup's allocation, compiler fences on them, and the special ones.
#pragma once

#include <cstdint>

namespace device::ptx {

// Takes registers from the block's pool; waits until they are free. The whole warpgroup calls it.
template <int kCount>
__device__ __forceinline__ void increase_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Returns registers beyond kCount to the block's pool. The whole warpgroup calls it.
template <int kCount>
__device__ __forceinline__ void decrease_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Nothing that uses these registers moves across this point: the compiler does not know that the
// warpgroup's products in flight use them.
template <int kCount>
__device__ __forceinline__ void pin(float (&values)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void pin(std::uint32_t (&words)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(words[i])::"memory");
}

// Makes registers opaque to the compiler, so that it computes nothing ahead from them.
__device__ __forceinline__ void hide(std::uint32_t& word) { asm volatile("" : "+r"(word)); }
__device__ __forceinline__ void hide(uint4& words) {
    asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
}

template <class T>
__device__ __forceinline__ void hide(T*& address) {
    asm volatile("" : "+l"(address));
}

// Nanoseconds of a clock that all SMs share; it advances in steps.
__device__ __forceinline__ std::uint64_t global_timer_ns() {
    std::uint64_t value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}

// The SM that runs this thread; ids need not be contiguous.
__device__ __forceinline__ std::uint32_t multiprocessor_id() {
    std::uint32_t value;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
    return value;
}

}  // namespace device::ptx
