// Copies by the Tensor Memory Accelerator, TMA: one instruction per function.
//
// Boxes of a tensor are described by a tensor map (device/tensor_map.h); a map must be in constant
// or global memory, so kernels take maps as __grid_constant__. A load's bytes count toward
// `barrier`'s phase, and are visible to whoever has waited for it.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "Kernels/device/ptx/memory.cuh"

namespace device::ptx {

// Contiguous bytes. Addresses and size are multiples of 16 bytes.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, std::uint32_t bytes,
                                          std::uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}

// Fetches contiguous bytes into L2. Address and size are multiples of 16 bytes.
__device__ __forceinline__ void bulk_prefetch(const void* global, std::uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

// Prefetches a tensor map before its first use.
__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// A box whose first element has these coordinates; elements outside the tensor arrive as zeros.
__device__ __forceinline__ void load_box(void* shared, const CUtensorMap& map,
                                         std::uint64_t* barrier, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y)
        : "memory");
}
__device__ __forceinline__ void load_box(void* shared, const CUtensorMap& map,
                                         std::uint64_t* barrier, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
        : "memory");
}
__device__ __forceinline__ void load_box(void* shared, const CUtensorMap& map,
                                         std::uint64_t* barrier, int x, int y, int z, int w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

__device__ __forceinline__ void load_box(void* shared, const CUtensorMap& map,
                                         std::uint64_t* barrier, int x, int y, int z, int w,
                                         int v) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
        : "memory");
}

// A box that arrives at the same place in every block of the cluster that `blocks` has a bit for,
// and counts toward the barrier at the same place there.
__device__ __forceinline__ void load_box_to(std::uint16_t blocks, void* shared,
                                            const CUtensorMap& map, std::uint64_t* barrier, int x,
                                            int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(shared)),
        "l"(&map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
}

// Writes a box of a two-dimensional tensor; parts outside it are dropped. Threads' writes to
// `shared` must have been fenced (fence_async_proxy).
__device__ __forceinline__ void store_box(const CUtensorMap& map, const void* shared, int x,
                                          int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
        "r"(shared_address(shared)), "r"(x), "r"(y)
        : "memory");
}

// Commits the group of this thread's stores since the last call.
__device__ __forceinline__ void commit_boxes() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the shared memory of all boxes that this thread has committed has been read.
__device__ __forceinline__ void wait_for_boxes_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

}  // namespace device::ptx
