// Makes a function of one of the tutorials, each of which is a whole program in one file with the
// same names as in the others. A file of ours includes this, includes a tutorial inside a
// namespace, and calls its host function through RUN_TUTORIAL.
#pragma once

#include <iostream>

#include "Kernels/baselines/cutlass_tutorials/gemm.h"
#include "Kernels/device/launch.h"

// CuTe ends the program when a call fails, unless somebody else has said what to do.
#define CUTE_CHECK_ERROR(call) device::check(call, "CUTLASS")
#define CUTE_CHECK_LAST()                 \
    CUTE_CHECK_ERROR(cudaGetLastError()); \
    CUTE_CHECK_ERROR(cudaDeviceSynchronize())

// The tutorials' helpers bring CuTe's tensors, which its other headers need to come first.
#include "example_utils.hpp"

// The layouts are those of the tutorials' own main functions.
#define RUN_TUTORIAL(function, tutorial)                                                           \
    void cutlass_tutorials::function(const Gemm& gemm) {                                           \
        auto rows_of = [](int rows, int columns) {                                                 \
            return cute::make_layout(cute::make_shape(rows, columns),                              \
                                     cute::make_stride(columns, cute::Int<1>{}));                  \
        };                                                                                         \
        const auto results = rows_of(gemm.m, gemm.n);                                              \
        tutorial::gemm_host_f16xf16_f32_f32_tnt(                                                   \
            static_cast<const cutlass::half_t*>(gemm.a), rows_of(gemm.m, gemm.k),                  \
            static_cast<const cutlass::half_t*>(gemm.b), rows_of(gemm.n, gemm.k), gemm.c, results, \
            gemm.d, results, gemm.alpha, gemm.beta);                                               \
    }

// What else the tutorials include: inside a namespace their own lines then find it included.
#include <cutlass/arch/barrier.h>
#include <cutlass/half.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#include <cstdio>
#include <cute/algorithm/cooperative_copy.hpp>
#include <cute/arch/cluster_sm90.hpp>
#include <cute/arch/tmem_allocator_sm100.hpp>
#include <cute/numeric/integral_constant.hpp>
#include <cutlass/cluster_launch.hpp>
#include <cutlass/util/print_error.hpp>

// Compiled and never called.
#define main static __attribute__((unused)) main_of_tutorial
