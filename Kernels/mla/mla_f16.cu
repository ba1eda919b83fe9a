#include "Kernels/mla/launch_mla.cuh"

namespace mla {

void launch_f16(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    launch_type<__half>(arguments, plan, stream);
}

void launch_merge_f16(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    launch_merge_of<__half>(arguments, plan, stream);
}

}  // namespace mla
