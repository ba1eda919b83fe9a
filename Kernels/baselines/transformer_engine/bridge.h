// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rust/cxx.h"

namespace transformer_engine_bridge {

struct Functions;
struct Tensor;
enum class Signature : std::uint8_t;

// What the library calls NVTETensor.
using Handle = void*;
using DestroyTensor = void (*)(Handle);

// A function of the library with its arguments. The library throws; so does this.
class Operation {
  public:
    Operation(const Functions& functions, Signature signature, rust::Slice<const Tensor> tensors,
              float epsilon, int multiprocessors);

    std::size_t workspace_bytes() const;
    void set_workspace(std::size_t address, std::size_t bytes) const;
    void enqueue(std::size_t stream) const;

  private:
    void set(std::size_t place, const Tensor& tensor) const;

    std::unique_ptr<const Functions> functions_;
    Signature signature_;
    float epsilon_;
    int multiprocessors_;
    // In the order of the function's parameters, then the workspace.
    std::vector<std::unique_ptr<void, DestroyTensor>> tensors_;
};

void use_own_norms(std::size_t enable_cudnn_forward, std::size_t enable_cudnn_backward);
std::unique_ptr<Operation> prepare(const Functions& functions, Signature signature,
                                   rust::Slice<const Tensor> tensors, float epsilon,
                                   std::int32_t multiprocessors);

}  // namespace transformer_engine_bridge
