// Norms, softmax and cross-entropy over rows.
//
// Tensors are dense and row major; matrices and vectors of columns are 16-byte aligned. The
// arithmetic is fp32, rounded once at the end.
#pragma once

#include <cstdint>

#include "Kernels/device/launch.h"
#include "Kernels/norms/config.h"

namespace norms {

// Every operation has a Matrix, [rows, columns] of `dtype`. Comments mark other shapes.

// out[r, c] = x[r, c] * rstd[r] * weight[c], rstd[r] = 1 / sqrt(mean_c(x[r, c]^2) + epsilon).
struct RmsNormForward : Matrix {
    const void* x;
    const void* weight;  // [columns]
    void* out;           // may be x
    float* rstd;         // [rows], or null
    bool wide_weight;    // fp32, not `dtype`
    float epsilon;
};

// In place: residual[r, c] += x[r, c], rounded; x[r, c] = residual[r, c] * rstd[r] * weight[c] with
// rstd of the new residual.
struct FusedAddRmsNorm : Matrix {
    void* x;
    void* residual;
    const void* weight;  // [columns]
    bool wide_weight;
    float epsilon;
};

// out[r, c] = (x[r, c] - mean[r]) * rstd[r] * weight[c] + bias[c],
// rstd[r] = 1 / sqrt(variance_c(x[r, c]) + epsilon).
struct LayerNormForward : Matrix {
    const void* x;
    const void* weight;  // [columns]
    const void* bias;    // [columns]
    void* out;           // may be x
    float* mean;         // [rows], or null
    float* rstd;         // [rows], or null
    bool wide_weight;    // weight and bias
    float epsilon;
};

enum class Norm { kRms, kLayer };

// Uses what the forward pass saved. With
//   normal = (x - mean[r]) * rstd[r]         (mean is 0 in RMSNorm)
//   scaled = out_gradient * weight[c]
// the gradients are
//   x_gradient      = rstd[r] * (scaled - mean_c(scaled) - normal * mean_c(scaled * normal))
//   weight gradient = sum_r(out_gradient * normal)
//   bias gradient   = sum_r(out_gradient)
// where RMSNorm has neither the term mean_c(scaled) nor a bias. Sums over rows have a fixed order:
// the same inputs give the same bits on the same GPU model.
struct NormBackward : Matrix {
    const void* x;
    const void* weight;  // [columns]
    const void* out_gradient;
    const float* mean;          // [rows]; null in RMSNorm
    const float* rstd;          // [rows]
    void* x_gradient;           // may be out_gradient
    void* column_gradients[2];  // [columns]: of the weight, and of the bias, null in RMSNorm
    float* partials;            // sums over some rows, in memory that the plan owns
    bool wide_weight;           // weight, bias and their gradients
    Norm norm;
};

// out[r, c] = exp(x[r, c] - max_r) / sum_c(exp(x[r, c] - max_r)).
struct SoftmaxForward : Matrix {
    const void* x;
    void* out;  // may be x
};

// From the forward pass's output:
// x_gradient[r, c] = out[r, c] * (out_gradient[r, c] - sum_c(out[r, c] * out_gradient[r, c])).
struct SoftmaxBackward : Matrix {
    const void* out;
    const void* out_gradient;
    void* x_gradient;  // may be an input
};

// lse[r] = ln(sum_c(exp(logits[r, c]))), loss[r] = lse[r] - logits[r, target]. A target that is not
// a column gives a loss of NaN.
struct CrossEntropyForward : Matrix {
    const void* logits;
    const std::int64_t* targets;  // [rows]
    float* loss;                  // [rows]
    float* lse;                   // [rows]
};

// logits_gradient[r, c] = (exp(logits[r, c] - lse[r]) - [c == target[r]]) * loss_gradient[r].
struct CrossEntropyBackward : Matrix {
    const void* logits;
    const std::int64_t* targets;  // [rows]
    const float* lse;             // [rows]
    const float* loss_gradient;   // [rows]
    void* logits_gradient;        // may be logits
};

// Both fused: the losses, and the gradient of their sum in place of the logits.
struct CrossEntropyFused : Matrix {
    void* logits;
    const std::int64_t* targets;  // [rows]
    float* loss;                  // [rows]
};

// Throw std::invalid_argument for anything check() (config.h) rejects, and for bad addresses.
device::Enqueue prepare(const RmsNormForward& params);
device::Enqueue prepare(const FusedAddRmsNorm& params);
device::Enqueue prepare(const LayerNormForward& params);
device::Enqueue prepare(const NormBackward& params);
device::Enqueue prepare(const SoftmaxForward& params);
device::Enqueue prepare(const SoftmaxBackward& params);
device::Enqueue prepare(const CrossEntropyForward& params);
device::Enqueue prepare(const CrossEntropyBackward& params);
device::Enqueue prepare(const CrossEntropyFused& params);

// One block per row, one element per thread at a time: the references for whole tensors.
device::Enqueue prepare_plain(const RmsNormForward& params);
device::Enqueue prepare_plain(const FusedAddRmsNorm& params);
device::Enqueue prepare_plain(const LayerNormForward& params);
device::Enqueue prepare_plain(const NormBackward& params);
device::Enqueue prepare_plain(const SoftmaxForward& params);
device::Enqueue prepare_plain(const SoftmaxBackward& params);
device::Enqueue prepare_plain(const CrossEntropyForward& params);
device::Enqueue prepare_plain(const CrossEntropyBackward& params);
device::Enqueue prepare_plain(const CrossEntropyFused& params);

}  // namespace norms
