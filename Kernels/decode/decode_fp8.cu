#include "Kernels/decode/launch_decode.cuh"

namespace decode {

void launch_fp8_cache(const Arguments& arguments, const Shape& shape, const Plan& plan,
                      cudaStream_t stream) {
    launch_type<__half, 1>(arguments, shape, plan, stream);
}

}  // namespace decode
