// What others' kernels do that a build has left out, --//bazel/cuda:instances=one.
#pragma once

#include <stdexcept>

namespace device {

[[noreturn]] inline void left_out() {
    throw std::runtime_error(
        "this build leaves the kernel out: build without --//bazel/cuda:instances=one");
}

}  // namespace device
