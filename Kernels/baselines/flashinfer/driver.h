// The CUDA driver as TRT-LLM-gen's headers call it, and how to run them without a device.
//
// driver.cc defines the driver's functions that those headers name, and finds the real ones when
// they are first called, so that a program starts where there is no driver. An error that the
// driver reports is thrown: the headers would only print it.
#pragma once

#include <string>
#include <vector>

namespace fi {

// A file of machine code, and what its bytes must hash to.
struct Cubin {
    std::string path;
    std::string sha256;
};

// While one lives, launches on its thread are noted and not made.
class Rehearsal {
  public:
    enum class Modules {
        // Nothing reaches the driver: no device is needed.
        kPretended,
        // Machine code is loaded; only launches are left out.
        kLoaded,
    };

    explicit Rehearsal(Modules modules);
    ~Rehearsal();
    Rehearsal(const Rehearsal&) = delete;
    Rehearsal& operator=(const Rehearsal&) = delete;

    // That of this thread, or null.
    static Rehearsal* current();

    const Modules modules;
    // What to answer, where modules are pretended, when asked whether all clusters of a launch are
    // resident at once. The library changes its choice where they are not.
    bool clusters_fit = true;

    // What was asked for, in order.
    std::vector<Cubin> cubins;
    // What was launched: the kernel, and the one that merges partial results where it follows.
    std::vector<std::string> launches;

  private:
    Rehearsal* outer_;
};

}  // namespace fi
