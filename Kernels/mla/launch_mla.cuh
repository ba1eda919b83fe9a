// Launch of the latent-attention kernel for one element type; each is a translation unit of its
// own.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "Kernels/device/launch.h"
#include "Kernels/mla/launch.h"
#include "Kernels/mla/merge.cuh"
#include "Kernels/mla/mla.cuh"

namespace mla {

template <class Tr>
void launch_traits(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    static_assert(Tr::kBlocks * (sizeof(SharedStorage<Tr>) + 1024) <= 228 * 1024,
                  "the blocks of a multiprocessor do not fit its shared memory");
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>(plan.blocks()));
    shape.block = dim3(Tr::kThreads);
    shape.shared_bytes = sizeof(SharedStorage<Tr>);
    device::launch("mla_decode", mla_kernel<Tr>, shape, stream, arguments);
}

template <class T, int kTeams>
void launch_merge(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    device::Launch shape;
    shape.grid =
        dim3(static_cast<unsigned>(arguments.rows), static_cast<unsigned>(plan.merges.size()));
    shape.block = dim3(kTeams * kMergeTeamThreads);
    shape.overlaps_previous = true;
    const int rows_of_part = plan.config.row_blocks * plan.config.rows;
    device::launch("mla_merge", merge_kernel<T, kTeams>, shape, stream, arguments, rows_of_part);
}

// The numbers of each variant agree with those of its Config.
template <class T>
void launch_type(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    switch (plan.config.variant) {
        case Variant::k16Rows:
            launch_traits<Traits<T, 1, 1, 4, 32, 3, 2>>(arguments, plan, stream);
            break;
        case Variant::k32Rows:
            launch_traits<Traits<T, 1, 2, 4, 32, 5, 1>>(arguments, plan, stream);
            break;
        case Variant::k64Rows:
            launch_traits<Traits<T, 2, 2, 4, 64, 2, 1>>(arguments, plan, stream);
            break;
        case Variant::kSeesaw:
            throw std::logic_error("the seesaw has a launch of its own");
    }
}

template <class T>
void launch_merge_of(const Arguments& arguments, const Plan& plan, cudaStream_t stream) {
    int most_parts = 0;
    for (const Merge& merge : plan.merges) most_parts = std::max(most_parts, merge.parts);
    const std::size_t rows = plan.merges.size() * static_cast<std::size_t>(arguments.rows);
    if (most_parts <= kFewParts || rows >= kManyRows) {
        launch_merge<T, 1>(arguments, plan, stream);
    } else {
        launch_merge<T, 4>(arguments, plan, stream);
    }
}

}  // namespace mla
