// The GEMMs of CUTLASS's CuTe tutorial for Blackwell, as functions.
#pragma once

namespace cutlass_tutorials {

// d = alpha * a * b^T + beta * c. Device addresses: a f16 [m, k], b f16 [n, k], c and d f32 [m, n].
struct Gemm {
    const void* a;
    const void* b;
    const float* c;
    float* d;
    int m;
    int n;
    int k;
    float alpha;
    float beta;
};

// Each launches its kernel on the default stream and waits for it, as the tutorials do.
void run_01(const Gemm& gemm);
void run_02(const Gemm& gemm);
void run_03(const Gemm& gemm);
void run_04(const Gemm& gemm);
void run_05(const Gemm& gemm);

}  // namespace cutlass_tutorials
