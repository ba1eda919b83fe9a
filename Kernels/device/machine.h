// The machine that a configuration is chosen for.
#pragma once

#include <string>

namespace device {

// One per folder of kernels: portable ones run on every GPU, the others on one generation.
enum class Arch { kPortable, kHopper, kBlackwell };

inline std::string to_string(Arch arch) {
    return arch == Arch::kHopper ? "hopper" : arch == Arch::kBlackwell ? "blackwell" : "portable";
}

// Blocks of a cluster that every GPU with clusters takes, and those of the largest there are.
constexpr int kPortableClusterBlocks = 8;
constexpr int kMaxClusterBlocks = 16;

struct Machine {
    int multiprocessors;
    // The newest architecture that the GPU runs and the program was built with.
    Arch arch;

    // The same GPU with the portable kernels.
    constexpr Machine portable() const { return {multiprocessors, Arch::kPortable}; }
};

// For the current device.
Machine current_machine();

// Clusters of kMaxClusterBlocks, with an SM for each block, that the current device runs at once: 0
// if it has no such clusters. Queried once per device.
int largest_clusters();

}  // namespace device
