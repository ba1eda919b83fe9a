// Backward passes of RMSNorm and LayerNorm, from what the forward pass saved. With
//   normal[r, c] = (x[r, c] - mean[r]) * rstd[r]         (mean is 0 in RMSNorm)
//   scaled[r, c] = out_gradient[r, c] * weight[c]
// the gradients are
//   x_gradient[r, c]   = rstd[r] * (scaled[r, c] - mean_c(scaled) - normal[r, c] * mean_c(scaled *
//   normal)) weight_gradient[c] = sum_r(out_gradient[r, c] * normal[r, c]) bias_gradient[c]   =
//   sum_r(out_gradient[r, c])
// where RMSNorm has neither the term mean_c(scaled) nor a bias. The arithmetic is fp32. Sums over
// rows have a fixed order: the same inputs give the same bits on the same kind of GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "Kernels/norms/config.h"
#include "Kernels/norms/element_type.h"

namespace norms {

enum class Norm { kRms, kLayer };

// Tensors are dense, row major, 16-byte aligned; x_gradient may be out_gradient.
struct NormBackward {
    Norm norm;
    const void* x;             // [rows, columns]
    const void* weight;        // [columns]
    const void* out_gradient;  // [rows, columns]
    const float* mean;         // [rows]; null in RMSNorm
    const float* rstd;         // [rows]
    void* x_gradient;          // [rows, columns]
    void* weight_gradient;     // [columns]
    void* bias_gradient;       // [columns]; null in RMSNorm
    // Memory for partial sums, at least workspace_bytes; contents need not be kept between calls.
    void* workspace;
    std::size_t workspace_bytes;
    std::int64_t rows;
    int columns;
    ElementType type;         // x, out_gradient, x_gradient
    ElementType weight_type;  // weight and its and the bias's gradients: kF32 or `type`
};

Config config_of(const NormBackward& params);
// What `workspace` must hold; `params` needs only norm, shape and types.
std::size_t workspace_bytes(const NormBackward& params, const Config& config);
std::size_t workspace_bytes(const NormBackward& params);
void launch(const NormBackward& params, const Config& config, cudaStream_t stream);
void launch(const NormBackward& params, cudaStream_t stream);

std::size_t plain_workspace_bytes(const NormBackward& params);
void launch_plain(const NormBackward& params, cudaStream_t stream);

}  // namespace norms
