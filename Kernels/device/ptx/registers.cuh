// Registers: how many a warpgroup has, what the compiler may assume of them, and the special ones.
#pragma once

#include <cstdint>

namespace device::ptx {

// Takes registers from the block's pool; waits until they are free. The whole warpgroup calls it.
template <int kCount>
__device__ __forceinline__ void increase_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Gives registers beyond kCount to the block's pool. The whole warpgroup calls it.
template <int kCount>
__device__ __forceinline__ void decrease_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Nothing that uses these registers moves across here: the compiler sees no tie between them and
// the warpgroup's products that are under way.
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

// Hides from the compiler what registers hold, so that it computes nothing ahead from them.
__device__ __forceinline__ void hide(std::uint32_t& word) { asm volatile("" : "+r"(word)); }
__device__ __forceinline__ void hide(uint4& words) {
    asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
}

// Nanoseconds of a clock that all multiprocessors share; it moves in steps.
__device__ __forceinline__ std::uint64_t global_timer_ns() {
    std::uint64_t value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}

// The multiprocessor that runs this thread; ids need not be contiguous.
__device__ __forceinline__ std::uint32_t multiprocessor_id() {
    std::uint32_t value;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
    return value;
}

}  // namespace device::ptx
