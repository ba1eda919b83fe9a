// Addresses, loads, stores, atomics and fences: one instruction per function.
#pragma once

#include <cstdint>

namespace device::ptx {

// A shared-memory address, as copy and wait instructions take it.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// With the default policy: for streams, 2 to 8 % faster than with hints on an H200 whose L2 is full
// of other kernels' lines, as it is between the layers of a model. That includes L1::no_allocate: 5
// % if rows are written as well. Coherent (not .nc), so in-place kernels may use it.
__device__ __forceinline__ uint4 load_16(const void* address) {
    uint4 value;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address)
                 : "memory");
    return value;
}

// Whether this architecture moves 32 bytes in one instruction.
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define H2H_MOVES_32_BYTES
#endif

// The same with 32 bytes, at a multiple of 32. Traps before sm_100a.
__device__ __forceinline__ void load_32(const void* address, uint4 (&value)[2]) {
#if defined(H2H_MOVES_32_BYTES)
    asm volatile("ld.global.v8.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(value[0].x), "=r"(value[0].y), "=r"(value[0].z), "=r"(value[0].w),
                   "=r"(value[1].x), "=r"(value[1].y), "=r"(value[1].z), "=r"(value[1].w)
                 : "l"(address)
                 : "memory");
#else
    __trap();
#endif
}
__device__ __forceinline__ void store_32(void* address, const uint4 (&value)[2]) {
#if defined(H2H_MOVES_32_BYTES)
    asm volatile("st.global.v8.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(address),
                 "r"(value[0].x), "r"(value[0].y), "r"(value[0].z), "r"(value[0].w),
                 "r"(value[1].x), "r"(value[1].y), "r"(value[1].z), "r"(value[1].w)
                 : "memory");
#else
    __trap();
#endif
}
#undef H2H_MOVES_32_BYTES

// A policy for loads of lines that the L2 evicts after all others.
__device__ __forceinline__ uint64_t evict_last_policy() {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ uint4 load_16_by_policy(const void* address, uint64_t policy) {
    uint4 value;
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address), "l"(policy)
                 : "memory");
    return value;
}

// Makes an L2 line of 128 bytes, loaded with whatever policy, as easy to evict as any other.
__device__ __forceinline__ void make_evictable_128(const void* address) {
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(address) : "memory");
}

// The same with 8 bytes, for elements that are widened to twice the size.
__device__ __forceinline__ uint2 load_8(const void* address) {
    uint2 value;
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(value.x), "=r"(value.y)
                 : "l"(address)
                 : "memory");
    return value;
}

// For data that no thread of the grid writes and many rows share (weights): kept in L1. Volatile,
// or the compiler hoists the loads out of the loop over rows and runs out of registers.
__device__ __forceinline__ uint4 load_16_shared_by_rows(const void* address) {
    uint4 value;
    asm volatile("ld.global.nc.L1::evict_last.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address));
    return value;
}

// For data that no thread of the grid writes, with the default policy. Volatile for the same
// reason.
__device__ __forceinline__ uint4 load_16_constant(const void* address) {
    uint4 value;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address));
    return value;
}

// With the default policy; see load_16.
__device__ __forceinline__ void store_16(void* address, uint4 value) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(value.x),
                 "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
}

// The same with 8 bytes, for elements that are narrowed to half the size.
__device__ __forceinline__ void store_8(void* address, uint2 value) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(value.x), "r"(value.y)
                 : "memory");
}

// A word that the host may write concurrently.
__device__ __forceinline__ uint32_t load_host_word(const uint32_t* address) {
    uint32_t value;
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

// Adds 1; returns the old value. Releases this thread's writes to the device, and acquires what
// others released by their arrivals.
__device__ __forceinline__ int count_arrival(int* counter) {
    int before;
    asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(counter)
                 : "memory");
    return before;
}

// Orders this thread's ordinary shared-memory accesses before later ones through the async proxy
// (TMA, wgmma).
__device__ __forceinline__ void fence_async_proxy() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace device::ptx
