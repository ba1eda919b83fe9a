// From a Dtype to a template argument.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <string>

#include "Kernels/device/dtype.h"
#include "Kernels/device/require.h"

namespace device {

template <class T>
constexpr Dtype kDtypeOf = T::no_dtype;
template <>
constexpr Dtype kDtypeOf<float> = Dtype::F32;
template <>
constexpr Dtype kDtypeOf<__half> = Dtype::F16;
template <>
constexpr Dtype kDtypeOf<__nv_bfloat16> = Dtype::Bf16;
template <>
constexpr Dtype kDtypeOf<__nv_fp8_e4m3> = Dtype::E4m3;

// Calls `function` with a value of the type, which must be one of those listed.
template <class First, class... Rest, class Function>
auto dispatch(Dtype dtype, Function&& function) {
    if (dtype == kDtypeOf<First>) return function(First{});
    if constexpr (sizeof...(Rest) > 0) {
        return dispatch<Rest...>(dtype, function);
    } else {
        refuse(std::string("no kernel for ") + name_of(dtype));
    }
}

// The types that activations may have.
template <class Function>
auto dispatch_activations(Dtype dtype, Function&& function) {
    return dispatch<float, __half, __nv_bfloat16>(dtype, function);
}

}  // namespace device
