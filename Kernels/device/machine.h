// The machine that a configuration is chosen for.
#pragma once

#include <string>

namespace device {

// One per shelf of kernels: portable ones run on every GPU, the others need the instructions of
// one generation.
enum class Arch { kPortable, kHopper, kBlackwell };

inline std::string to_string(Arch arch) {
    return arch == Arch::kHopper ? "hopper" : arch == Arch::kBlackwell ? "blackwell" : "portable";
}

struct Machine {
    int multiprocessors;
    // The best shelf that the GPU runs and the program was built with.
    Arch arch;

    // The same GPU, served by the portable kernels.
    constexpr Machine portable() const { return {multiprocessors, Arch::kPortable}; }
};

// Of the current device.
Machine current_machine();

}  // namespace device
