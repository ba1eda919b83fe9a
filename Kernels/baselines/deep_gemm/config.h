// DeepGEMM's tile heuristic, as in its host code (0.2.5). The library compiles the chosen kernel at
// run time; here it must be one of those compiled ahead of time.
#pragma once

#include <cstdint>
#include <string>

namespace deep_gemm_baseline {

enum class Kind { kDense, kContiguous, kMasked };

struct Problem {
    Kind kind;
    bool fp8;  // else bf16
    int m;     // rows; masked: of one group's space
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

// On sm_90a: among all tiles that shared memory and registers allow, the one with the fewest
// estimated cycles of L1 and L2 traffic. On sm_100a: one tile for all grouped GEMMs; dense ones are
// not bridged. Throws std::invalid_argument if there is none.
Config choose(const Problem& problem, const Target& target);

std::string to_string(const Config& config);

}  // namespace deep_gemm_baseline
