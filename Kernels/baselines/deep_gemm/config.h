// DeepGEMM's tile heuristic, as in its host code (0.2.5). The library compiles the chosen kernel at
// run time; here it must be one of those compiled ahead of time.
#pragma once

#include <cstdint>
#include <string>

namespace deep_gemm_baseline {

enum class Kind { kDense, kContiguous, kMasked };

// FP8 is e4m3 with a scale per 128 of k, MXFP8 and MXFP4 are e4m3 and e2m1 with one per 32.
enum class Operands { kBf16, kFp8, kMxfp8, kMxfp4 };

constexpr int element_bits(Operands operands) {
    return operands == Operands::kBf16 ? 16 : operands == Operands::kMxfp4 ? 4 : 8;
}

// Elements of k that share a scale.
constexpr int scale_depth(Operands operands) { return operands == Operands::kFp8 ? 128 : 32; }

struct Problem {
    Kind kind;
    Operands operands;
    int m;  // rows; masked: of one group's space
    int n;
    int k;
    int groups;
    int expected_m;  // masked: rows that a group is expected to use
};

struct Config {
    int block_m;
    int block_n;
    int block_k;
    int stages;
    // Blocks of a cluster along rows share b, along columns a; at most one is 2.
    int cluster_m;
    int cluster_n;
    int threads;
    int shared_bytes;
    int swizzle_d_bytes;
    int store_rows;  // per store of the result
    bool swaps;      // computes the transposed product
};

// A device that kernels are compiled for: the number of multiprocessors is a compile-time constant
// of the library's kernels.
struct Target {
    int major;
    int multiprocessors;
};
constexpr Target kSm90 = {9, 132};    // H100 SXM, H200, GH200
constexpr Target kB200 = {10, 148};   // B200
constexpr Target kGb200 = {10, 152};  // GB200

// The target of a device. Throws std::invalid_argument if no kernels are compiled for it.
Target target_of(int major, int multiprocessors);

// What a tile for sm_100a needs in shared memory: as many stages as fit beside two parts of the
// result, barriers for 32 stages and the address of tensor memory.
struct Pipeline {
    int stages;
    int shared_bytes;
};
constexpr Pipeline pipeline_sm100(Operands operands, int block_m, int block_n, int cluster_m,
                                  int cluster_n, bool swaps) {
    constexpr int kMostStages = 32, kBarrierBytes = 828, kCapacity = 232448, kLineBytes = 128;
    const int out_line = block_n * 2;
    const int swizzle = out_line % 128 == 0 ? 128 : out_line % 64 == 0 ? 64 : 32;
    const int fixed = kBarrierBytes + 2 * (swaps ? 16 * out_line : block_m * swizzle);
    // Of 128 rows each, four along k in a word.
    const int scales = 4 * ((block_m + 127) / 128 * 128 + (block_n + 127) / 128 * 128);
    const int words = operands == Operands::kBf16 ? 0 : operands == Operands::kMxfp4 ? 2 : 1;
    const int stage = (block_m / cluster_n + block_n / cluster_m) * kLineBytes + words * scales;
    const int fitting = (kCapacity - fixed) / stage;
    const int stages = fitting < kMostStages ? fitting : kMostStages;
    return {stages, fixed + stages * stage};
}

// On sm_90a: among all tiles that shared memory and registers allow, the one with the fewest
// estimated cycles of L1 and L2 traffic. On sm_100a: one tile for all grouped GEMMs, and for dense
// ones that with the fewest waves of blocks; dense bf16 it leaves to cuBLASLt. Throws
// std::invalid_argument if there is none.
Config choose(const Problem& problem, const Target& target);

std::string to_string(const Config& config);

}  // namespace deep_gemm_baseline
