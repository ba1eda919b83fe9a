// DeepGEMM's own choice of a tile for a shape on sm_90a, as its host code (0.2.5) makes it: among
// all tiles that shared memory and registers allow, the one with the fewest estimated cycles of L1
// and L2 traffic. The library compiles the chosen kernel at run time; here it must be one of those
// that were compiled ahead.
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
};

// Throws std::invalid_argument where no tile is allowed.
Config choose(const Problem& problem, int multiprocessors);

std::string to_string(const Config& config);

}  // namespace deep_gemm_baseline
