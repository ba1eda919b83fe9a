#include "Kernels/mla/launch_mla.cuh"

namespace mla {

void launch_bf16(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    launch_type<__nv_bfloat16>(arguments, plan, stream);
}

void launch_merge_bf16(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    launch_merge_of<__nv_bfloat16>(arguments, plan, stream);
}

}  // namespace mla
