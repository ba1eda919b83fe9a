// TMA tensor descriptors, built on the host.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "Kernels/device/launch.h"

namespace device {

// A tensor and the boxes copied from it; dimensions start with the contiguous one.
template <int kRank>
struct BoxedTensor {
    CUtensorMapDataType type;
    const void* address;
    cuuint64_t sizes[kRank];
    // In bytes, of all dimensions but the first.
    cuuint64_t strides[kRank - 1];
    cuuint32_t box[kRank];
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
};

using TensorMapEncoder = decltype(&cuTensorMapEncodeTiled);

// The driver's function, found through the runtime so that nothing links against the driver.
inline TensorMapEncoder tensor_map_encoder() {
    static const TensorMapEncoder encoder = [] {
        void* found = nullptr;
        cudaDriverEntryPointQueryResult result;
        check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                               cudaEnableDefault, &result),
              "cudaGetDriverEntryPointByVersion");
        if (result != cudaDriverEntryPointSuccess) {
            throw std::runtime_error(
                "the driver lacks cuTensorMapEncodeTiled; CUDA 12 or later is required");
        }
        return reinterpret_cast<TensorMapEncoder>(found);
    }();
    return encoder;
}

// Elements outside the tensor read as 0.
template <int kRank>
CUtensorMap tensor_map(const BoxedTensor<kRank>& tensor) {
    cuuint32_t steps[kRank];
    for (cuuint32_t& step : steps) step = 1;
    CUtensorMap map;
    const CUresult result = tensor_map_encoder()(
        &map, tensor.type, kRank, const_cast<void*>(tensor.address), tensor.sizes, tensor.strides,
        tensor.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, tensor.swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) {
        throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(result));
    }
    return map;
}

}  // namespace device
