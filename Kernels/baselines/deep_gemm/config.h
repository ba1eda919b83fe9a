// DeepGEMM's own choice of a tile for a shape, as its host code (0.2.5) makes it. The library
// compiles the chosen kernel at run time; here it must be one of those that were compiled ahead.
#pragma once

#include <cstdint>
#include <string>

namespace deep_gemm_baseline {

enum class Kind { kDense, kContiguous, kMasked };

struct Problem {
    Kind kind;
    bool fp8;  // else bf16
    int m;     // rows; masked: of one group's room
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
    // Blocks of a cluster along rows share their b, along columns their a; at most one is 2.
    int cluster_m;
    int cluster_n;
    int threads;
    int shared_bytes;
    int swizzle_d_bytes;
    int store_rows;  // of one store of the result
    bool swaps;      // computes the transposed product
};

// A device that kernels are compiled for: the library has the number of multiprocessors as a
// constant of its kernels.
struct Target {
    int major;
    int multiprocessors;
};
constexpr Target kSm90 = {9, 132};    // H100 SXM, H200, GH200
constexpr Target kB200 = {10, 148};   // B200
constexpr Target kGb200 = {10, 152};  // GB200

// The one that a device is. Throws std::invalid_argument where no kernels are compiled for it.
Target target_of(int major, int multiprocessors);

// On sm_90a: among all tiles that shared memory and registers allow, the one with the fewest
// estimated cycles of L1 and L2 traffic. On sm_100a: one tile for all grouped products; dense ones
// are not bridged. Throws std::invalid_argument where there is none.
Config choose(const Problem& problem, const Target& target);

std::string to_string(const Config& config);

}  // namespace deep_gemm_baseline
