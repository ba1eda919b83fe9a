// C++ side of the cxx bridge in lib.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rust/cxx.h"

namespace column_sums::bridge {

struct PartialSum;
enum class WeightDtype : std::uint8_t;

// Device memory that frees itself.
class Workspace {
  public:
    explicit Workspace(std::size_t bytes);
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    std::size_t address() const { return reinterpret_cast<std::size_t>(address_); }

  private:
    void* address_ = nullptr;
};

std::unique_ptr<Workspace> allocate_workspace(std::size_t bytes);
void sum_partials(rust::Slice<const PartialSum> sums, std::size_t rows, std::size_t columns,
                  WeightDtype dtype, std::size_t stream);

}  // namespace column_sums::bridge
