// Launches for one element type each; every file that defines some is a translation unit of its
// own.
#pragma once

#include "Kernels/mla/arguments.cuh"

namespace mla {

void launch_bf16(const Arguments& arguments, const Plan& plan, cudaStream_t stream);
void launch_f16(const Arguments& arguments, const Plan& plan, cudaStream_t stream);

// sm_90a only.
void launch_seesaw_bf16(const Arguments& arguments, const Plan& plan, const Shape& sizes,
                        cudaStream_t stream);
void launch_seesaw_f16(const Arguments& arguments, const Plan& plan, const Shape& sizes,
                       cudaStream_t stream);

// For a plan that has something to merge.
void launch_merge_bf16(const Arguments& arguments, const Plan& plan, cudaStream_t stream);
void launch_merge_f16(const Arguments& arguments, const Plan& plan, cudaStream_t stream);

}  // namespace mla
