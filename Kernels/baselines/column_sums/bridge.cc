#include "Kernels/baselines/column_sums/bridge.h"

#include <iterator>
#include <stdexcept>

#include "Kernels/baselines/column_sums/column_sums.h"
#include "Kernels/baselines/column_sums/lib.rs.h"
#include "Kernels/bridge/convert.h"

namespace column_sums::bridge {

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
