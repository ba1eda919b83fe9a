#include "Kernels/decode/launch_decode.cuh"

namespace decode {

void launch_f16(const Arguments& arguments, const Shape& shape, const Plan& plan,
                cudaStream_t stream) {
    launch_type<__half>(arguments, shape, plan, stream);
}

}  // namespace decode
