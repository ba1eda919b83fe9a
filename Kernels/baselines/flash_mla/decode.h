// FlashMLA's dense decoding for sm_90a: machine code from its wheel, launched as its own host code
// launches it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "Kernels/baselines/flash_mla/parameters.h"

namespace flash_mla {

// Page p of sequence s is indices[indptr[s] + p].
struct PageTable {
    std::vector<std::int32_t> lengths;
    std::vector<std::int32_t> indptr;
    std::vector<std::int32_t> indices;
};

// Device addresses that the caller owns.
struct Tensors {
    const void* q;
    const void* cache;
    void* out;
};

// A step whose schedule is on the device; it may be enqueued any number of times.
class Planned {
  public:
    Planned() = default;
    virtual ~Planned() = default;
    Planned(const Planned&) = delete;
    Planned& operator=(const Planned&) = delete;

    // The kernel, and the one that combines partial results, on a cudaStream_t. Does not allocate
    // or synchronise.
    virtual void enqueue(void* stream) const = 0;

    // Time on the device of the kernel that made the schedule.
    double microseconds = 0;
    std::string kernel;
};

// Whether this build has the machine code; if not, `plan` throws.
bool is_built();

// For the current device. Throws std::invalid_argument for what the kernels do not take.
std::unique_ptr<Planned> plan(const Step& step, const Tensors& tensors, const PageTable& table);

}  // namespace flash_mla
