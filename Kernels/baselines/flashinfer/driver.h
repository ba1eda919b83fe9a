// The CUDA driver as TRT-LLM-gen's headers call it, and how to run them without a device.
//
// driver.cc defines the driver functions that those headers use, and finds the real ones on their
// first call, so that a program starts without a driver. Driver errors are thrown: the headers
// would only print them.
#pragma once

#include <string>
#include <vector>

namespace fi {

// A cubin file and its expected hash.
struct Cubin {
    std::string path;
    std::string sha256;
};

// While one exists, launches on its thread are recorded instead of made.
class Rehearsal {
  public:
    enum class Modules {
        // Nothing reaches the driver: no device is needed.
        kPretended,
        // Cubins are loaded; only launches are left out.
        kLoaded,
    };

    explicit Rehearsal(Modules modules);
    ~Rehearsal();
    Rehearsal(const Rehearsal&) = delete;
    Rehearsal& operator=(const Rehearsal&) = delete;

    // That of this thread, or null.
    static Rehearsal* current();

    const Modules modules;
    // With mock modules: whether all clusters of a launch are resident at once. The library makes
    // another choice if they are not.
    bool clusters_fit = true;

    // What was requested, in order.
    std::vector<Cubin> cubins;
    // What was launched: the kernel, and the one that merges partial results, if any.
    std::vector<std::string> launches;

  private:
    Rehearsal* outer_;
};

}  // namespace fi
