// The launchers of each architecture, instantiated per element type by its instance.cu.
#pragma once

#include "Kernels/mla/arguments.cuh"

namespace mla {

namespace portable {
template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Plan& plan, cudaStream_t stream);
}

namespace hopper {
template <class T>
void launch(const Arguments& arguments, const Plan& plan, const Shape& sizes, cudaStream_t stream);
}

namespace blackwell {
template <class T, int kCacheBytes>
void launch(const Arguments& arguments, const Plan& plan, const Shape& sizes, cudaStream_t stream);
}

// For a plan that has parts to merge.
void launch_merge(const Arguments& arguments, const Plan& plan, device::Dtype dtype,
                  cudaStream_t stream);

}  // namespace mla
