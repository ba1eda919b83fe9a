// The decode kernel.
//
// A block works through its segments: runs of tiles of one sequence and head of the cache. Its
// warps take the tiles of a segment in turn, each with a ring of its own in shared memory that it
// fills by asynchronous copies and multiplies with tensor cores; no warp waits for another until
// the segment ends. Then the warps merge their sums, and the block writes the result, or its part
// of it. The block that brings the last part of an item merges the parts.
//
// The rows of a tile are the queries (new token, head of the group) that share the head of the
// cache. Copies run ahead over the ends of segments, so the memory is never idle while results are
// merged.
#pragma once

#include "Kernels/decode/merge.cuh"

namespace decode {

template <class Tr>
__global__ void __launch_bounds__(Tr::kThreads, kBlocksPerMultiprocessor)
    decode_kernel(const __grid_constant__ Arguments a) {
    extern __shared__ std::uint8_t raw[];
    auto& shared = *reinterpret_cast<SharedStorage<Tr>*>(raw);
    const int warp = threadIdx.x / 32;
    const int share = blockIdx.x / a.row_blocks;
    const int row_block = blockIdx.x % a.row_blocks;
    const int begin = a.workspace.share_begin[share];
    const int end = a.workspace.share_begin[share + 1];
    const std::uint32_t ring = ptx::shared_address(shared.ring[warp]);

    Loader<Tr> loader(a, ring, begin, end);
#pragma unroll
    for (int stage = 0; stage + 1 < Tr::kStages; ++stage) loader.copy_next();
    int stage = 0;
    for (int index = begin; index < end; ++index) {
        const Segment segment = a.workspace.segments[index];
        Queries<Tr> queries;
        queries.load(a, segment, row_block * Tr::kRows);
        Softmax<Tr> softmax;
        softmax.start(a, segment, row_block * Tr::kRows);
        // From here on some row does not see all.
        const int first_hidden = segment.length - a.q_len + 1;
        for (int tile = segment.tile_begin + warp; tile < segment.tile_end; tile += kWarps) {
            ptx::wait_for_copies<Tr::kStages - 2>();
            // All lanes' copies have arrived, and all lanes are done with the stage to be refilled.
            __syncwarp();
            loader.copy_next();
            const std::uint32_t keys = ring + stage * 2 * Tr::kBytes;
            float scores[Tr::kRowTiles][Tr::kTokens / 8][4];
            multiply_keys<Tr>(queries, keys, scores);
            const int first_token = tile * Tr::kTokens;
            if (first_token + Tr::kTokens > first_hidden) mask<Tr>(scores, softmax, first_token);
            weigh<Tr>(scores, softmax);
            multiply_values<Tr>(scores, keys + Tr::kBytes, softmax);
            stage = stage + 1 == Tr::kStages ? 0 : stage + 1;
        }
        merge_warps<Tr>(shared, softmax);
        if (warp == 0) store<Tr>(a, segment, row_block, softmax);
        if (segment.slot >= 0 && arrive(a, segment, row_block)) {
            merge_parts<Tr>(a, segment, row_block);
        }
    }
    ptx::wait_for_copies<0>();
}

}  // namespace decode
