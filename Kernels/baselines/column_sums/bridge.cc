#include "Kernels/baselines/column_sums/bridge.h"

#include <cuda_runtime.h>

#include <iterator>
#include <stdexcept>
#include <string>

#include "Kernels/baselines/column_sums/column_sums.h"
#include "Kernels/baselines/column_sums/lib.rs.h"
#include "Kernels/device/bridge.h"

namespace column_sums::bridge {

Workspace::Workspace(std::size_t bytes) {
    const cudaError_t status = cudaMalloc(&address_, bytes);
    if (status != cudaSuccess) {
        throw std::runtime_error("workspace of " + std::to_string(bytes) +
                                 " bytes: " + cudaGetErrorString(status));
    }
}

// A failure here means that the context is gone, and with it the memory.
Workspace::~Workspace() { static_cast<void>(cudaFree(address_)); }

std::unique_ptr<Workspace> allocate_workspace(std::size_t bytes) {
    return std::make_unique<Workspace>(bytes);
}

void sum_partials(rust::Slice<const PartialSum> sums, std::size_t rows, std::size_t columns,
                  WeightDtype dtype, std::size_t stream) {
    ColumnSums params = {};
    if (sums.size() > std::size(params.sums)) throw std::invalid_argument("more than two sums");
    for (const PartialSum& sum : sums) {
        params.sums[params.sum_count++] = {device::pointer<const float>(sum.partials),
                                           device::pointer<void>(sum.out)};
    }
    params.rows = device::narrow("rows", rows);
    params.columns = device::narrow("columns", columns);
    params.out_type = dtype == WeightDtype::Bf16 ? WeightType::kBf16 : WeightType::kF32;
    column_sums::launch(params, reinterpret_cast<cudaStream_t>(stream));
}

}  // namespace column_sums::bridge
