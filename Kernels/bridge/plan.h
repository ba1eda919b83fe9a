// What kernels expose to Rust: an operation on given tensors that only needs a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "Kernels/device/dtype.h"
#include "Kernels/device/launch.h"

namespace device {

enum class Variant : std::uint8_t { Tuned, Portable, Plain };

// Everything is checked, chosen, allocated and copied when a plan is made, not when it runs.
class Plan {
  public:
    // `enqueue` owns what it needs, such as a workspace; `facts` is a JSON object.
    explicit Plan(Enqueue enqueue, std::string facts = "{}")
        : enqueue_(std::move(enqueue)), facts_(std::move(facts)) {}

    void enqueue(std::size_t stream) const { enqueue_(reinterpret_cast<cudaStream_t>(stream)); }
    const std::string& facts() const { return facts_; }

  private:
    Enqueue enqueue_;
    std::string facts_;
};

// For operations with a tuned and a plain kernel.
template <class Params>
std::unique_ptr<Plan> plan(const Params& params, Variant variant) {
    return std::make_unique<Plan>(variant == Variant::Plain ? prepare_plain(params)
                                                            : prepare(params));
}

}  // namespace device
