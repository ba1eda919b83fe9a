// The decode kernel.
//
// A team of warps works through its segments: runs of tiles of one sequence and KV head. Its warps
// take turns at the tiles of a segment, each with a private ring in shared memory that it fills by
// cp.async and multiplies on tensor cores; no warp waits for another until the segment ends. Then
// the warps merge their sums, and the team writes the result, or its part of it. The team that
// brings the last part of an item merges the parts.
//
// The fewer sequences and heads, the more warps per team: a single sequence has few parts if whole
// blocks work on them, and many sequences need no merge if each has its own warp.
//
// The rows of a tile are the queries (new token, head of the group) that share a KV head. Copies
// run ahead across segment boundaries, so memory is never idle while results are merged.
#pragma once

#include "Kernels/decode/portable/finish.cuh"

namespace decode::portable {

template <class Tr>
__global__ void __launch_bounds__(32 * Tr::kMostWarps, 1)
    decode_kernel(const __grid_constant__ Arguments a) {
    extern __shared__ std::uint8_t raw[];
    auto* shared = reinterpret_cast<WarpStorage<Tr>*>(raw);
    const Team team = {a.team_warps};
    const int number = a.number_of_team(team.first_warp() / team.warps);
    if (number < 0) return;
    const int share = a.row_blocks.quotient(number);
    const int first_row = (number - share * a.row_blocks.value) * Tr::kRows;
    WarpStorage<Tr>& own = shared[threadIdx.x / 32];
    int index = first_segment(a, share);

    Loader<Tr> loader(a, team, ptx::shared_address(own.ring), index);
#pragma unroll 1
    for (int stage = 0; stage + 1 < Tr::kStages; ++stage) loader.copy_next();
    while (index >= 0) {
        Softmax<Tr> softmax;
        softmax.start();
        {
            const Segment segment = segment_of(a, index);
            Queries<Tr> queries;
            queries.load(a, segment, first_row, own);
            // From here on some row does not see every token.
            const int visible = segment.length - a.q_len + 1;
            for (int tile = segment.tile_begin + team.warp(); tile < segment.tile_end;
                 tile += team.warps) {
                ptx::wait_for_copies<Tr::kStages - 2>();
                // All lanes' copies have arrived, and all lanes are done with the stage about to be
                // refilled.
                __syncwarp();
                loader.copy_next();
                const std::uint32_t keys = loader.oldest();
                float scores[Tr::kRowTiles][Tr::kTokens / 8][4];
                multiply_keys<Tr>(queries, keys, scores);
                const int first_token = tile * Tr::kTokens;
                if (first_token + Tr::kTokens > visible) {
                    mask<Tr>(a, scores, first_row, visible, first_token);
                }
                weigh<Tr>(scores, softmax);
                multiply_values<Tr>(scores, keys + Tr::kBytes, softmax);
            }
        }
        // Recomputed: the loop over tiles has no registers to spare.
        const Segment segment = segment_of(a, index);
        finish<Tr>(a, segment, first_row, team, shared, softmax);
        if (segment.slot >= 0 && arrive(a, segment, first_row / Tr::kRows, team)) {
            merge_parts<Tr>(a, segment, first_row, team);
        }
        index = segment.next;
    }
    ptx::wait_for_copies<0>();
}

}  // namespace decode::portable
