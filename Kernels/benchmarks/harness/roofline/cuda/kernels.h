// Kernels that reach a card's limits: memory streams and arithmetic in registers.
//
// Plain host functions for the bridge: addresses and streams are integers, functions only enqueue
// and throw std::runtime_error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace roofline {

// Kinds of traffic, as they cross the bridge.
constexpr uint32_t kCopy = 0;   // out = a:         reads `bytes`, writes `bytes`
constexpr uint32_t kTriad = 1;  // out = a + s * b: reads 2 * `bytes`, writes `bytes`
constexpr uint32_t kRead = 2;   // reads `bytes`

// One pass over `bytes` of each array, a multiple of 16 * threads * unroll. `unroll` is 1, 2, 4 or
// 8 vectors of 16 bytes in flight per thread. `blocks` of 0 means one tile per block. `hinted`
// accesses mark their lines as used once. Kind read writes at most one word to `out`.
void memory_pass(uint32_t traffic, bool hinted, uint32_t threads, uint32_t unroll, uint32_t blocks,
                 size_t out, size_t a, size_t b, uint64_t bytes, size_t stream);

// The driver's own device-to-device copy, for comparison.
void memcpy_pass(size_t out, size_t a, uint64_t bytes, size_t stream);

// Multiply-adds in fp32 on the ordinary units, fp32_flops_per_step() by each thread. `operands` is
// two floats, `out` one float per thread.
uint64_t fp32_flops_per_step();
void fp32_steps(uint32_t blocks, uint32_t threads, uint32_t steps, size_t operands, size_t out,
                size_t stream);

// Tensor-core MMAs with fp32 accumulation, element types as below.
constexpr uint32_t kBf16 = 0;
constexpr uint32_t kF16 = 1;
constexpr uint32_t kF8E4M3 = 2;
constexpr uint32_t kNvfp4 = 3;  // Blackwell only

// Operands are read from `operands`, tensor_operand_bytes() of values of the type; `out` is one
// float per thread: the sum of its accumulators. `warpgroups` per block is 1 to 3, one block per
// multiprocessor. Throws if this build has no such kernel for the card.
size_t tensor_operand_bytes();
uint64_t tensor_flops_per_step(uint32_t type);  // of one warpgroup
void tensor_steps(uint32_t type, uint32_t blocks, uint32_t warpgroups, uint32_t steps,
                  size_t operands, size_t out, size_t stream);

// The same on Blackwell, whose sums are in tensor memory: 128 threads per block, one block per
// multiprocessor.
size_t tensor_memory_operand_bytes();
uint64_t tensor_memory_flops_per_step(uint32_t type);  // of one block
void tensor_memory_steps(uint32_t type, uint32_t blocks, uint32_t steps, size_t operands,
                         size_t out, size_t stream);

}  // namespace roofline
