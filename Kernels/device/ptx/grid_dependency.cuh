// Programmatic dependent launch: a kernel that starts while its predecessor drains.
#pragma once

namespace device::ptx {

// Returns once every earlier grid of the stream has finished and its stores are visible. A no-op
// unless the launch requested programmatic serialization.
__device__ __forceinline__ void wait_for_previous_grid() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Lets the dependent grid be scheduled as soon as every block has called this or exited.
__device__ __forceinline__ void allow_next_grid() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace device::ptx
