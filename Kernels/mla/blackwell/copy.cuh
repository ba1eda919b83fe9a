// Copies of Blackwell's latent-attention kernel: queries, and pages of the cache.
#pragma once

#include <cstdint>

#include "Kernels/device/bounded_rows.cuh"
#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/mla/blackwell/storage.cuh"

namespace mla::blackwell {

// Of a tile.
constexpr int kMostBoxes = kTokens / kLeastBoxTokens;
static_assert(kMostBoxes == 4, "half of a tile has one box or two");

// One warp per block. It runs ahead of the products, across segment boundaries, and copies in the
// order in which they read: keys of a tile, then values of the tile before. What it copies of an
// FP8 cache are codes, for the block's own converter.
template <int kCacheBytes>
class Copier {
    using Memory = Storage<kCacheBytes>;
    static constexpr bool kFp8 = Memory::kFp8;

  public:
    __device__ Copier(const Arguments& a, const Maps& maps, const Work& work, Memory& shared)
        : a_(a),
          maps_(maps),
          work_(work),
          shared_(shared),
          lane_(threadIdx.x % 32),
          box_tokens_(min(1 << a.page_shift, kBlockTokens)) {}

    __device__ void run() {
        for (int index = work_.begin; index < work_.end; ++index) {
            const Segment segment = a_.workspace.segments[index];
            if (tiles_of(segment) == 0) continue;
            copy_queries(segment);
            copy_tiles(segment);
        }
    }

  private:
    // Rows `row` to `row + rows of a box` from one chunk on; rows from `valid` on arrive as zeros.
    __device__ void copy_box(std::uint8_t* to, const CUtensorMap& map, std::uint32_t barrier,
                             int chunk, int row, int valid) {
        ptx::load_box_of_pair(to, map, barrier, chunk * 64, device::kFarRow - valid, row + valid,
                              device::kFarRow);
    }

    // The even block's barriers count the bytes of both.
    __device__ void expect(std::uint64_t* barrier, int bytes) {
        if (work_.rank == 0) ptx::mbarrier_expect_bytes(barrier, kBlocks * bytes);
    }

    __device__ void copy_queries(const Segment& segment) {
        wait(&shared_.queries_empty, queries_turn_++ ^ 1);
        if (lane_ != 0) return;
        const int first = work_.first_row + work_.rank * kBlockRows;
        const int valid = max(min(kBlockRows, a_.rows - first), 0);
        expect(&shared_.queries_full, kChunks * kChunkBytes);
        for (int chunk = 0; chunk < kChunks; ++chunk) {
            copy_box(shared_.queries[chunk], maps_.q, ptx::peer_address(&shared_.queries_full, 0),
                     chunk, segment.sequence * a_.rows + min(first, a_.rows), valid);
        }
    }

    // The pool row at which a box of the sequence begins.
    __device__ int find_box(const Segment& segment, int box) const {
        const int token = box * box_tokens_;
        if (token >= segment.length) return 0;
        const int page = __ldg(a_.pages + segment.page_begin + (token >> a_.page_shift));
        return (page << a_.page_shift) + (token & ((1 << a_.page_shift) - 1));
    }

    __device__ void copy_tiles(const Segment& segment) {
        const int boxes = kTokens / box_tokens_;
        const int tiles = tiles_of(segment);
        const int first_box = segment.tile_begin * boxes;
        // Each lane holds one box; the next 32 are looked up while these are copied.
        int known = 0, known_next = find_box(segment, first_box + lane_);
        int rows[kMostBoxes] = {}, rows_before[kMostBoxes] = {};
        for (int tile = 0; tile <= tiles; ++tile) {
            const int left = segment.length - (segment.tile_begin + tile) * kTokens;
            if (tile < tiles) {
                const int box = tile * boxes;
                if (box % 32 == 0) {
                    known = known_next;
                    known_next = find_box(segment, first_box + box + 32 + lane_);
                }
#pragma unroll
                for (int part = 0; part < kMostBoxes; ++part) {
                    rows_before[part] = rows[part];
                    rows[part] = __shfl_sync(~0u, known, (box + part) % 32);
                }
                copy_keys(rows, left);
            }
            if (tile > 0) copy_values(tile < tiles ? rows_before : rows, left + kTokens);
        }
    }

    // Waits for a stage; its bytes count toward its phase.
    __device__ int next_stage(int chunks) {
        const int stage = ring_.stage();
        if constexpr (kFp8) {
            wait(&shared_.codes_empty[stage], ring_.parity() ^ 1);
            // What lies behind the rotary part counts too.
            if (lane_ == 0) ptx::mbarrier_expect_bytes(&shared_.codes_full[stage], kCodeBytes);
        } else {
            wait(&shared_.empty[stage], ring_.parity() ^ 1);
            if (lane_ == 0) expect(&shared_.full[stage], chunks * kChunkBytes);
        }
        ++ring_.count;
        return stage;
    }

    // Half of a tile's tokens of the chunks of one stage.
    __device__ void copy_stage(int stage, int chunk, int chunks, const int (&rows)[kMostBoxes],
                               int half, int left) {
        if constexpr (kFp8) {
            copy_rows(shared_.codes[stage],
                      ptx::peer_address(&shared_.codes_full[stage], work_.rank), chunk, rows, half,
                      left);
        } else {
            const std::uint32_t barrier = ptx::peer_address(&shared_.full[stage], 0);
            for (int place = 0; place < chunks; ++place) {
                copy_rows(shared_.stages[stage][place], barrier, chunk + place, rows, half, left);
            }
        }
    }

    // Half of a tile's tokens; 128 bytes of each, from one chunk on.
    __device__ void copy_rows(std::uint8_t* to, std::uint32_t barrier, int chunk,
                              const int (&rows)[kMostBoxes], int half, int left) {
        const int boxes = kBlockTokens / box_tokens_;
#pragma unroll
        for (int part = 0; part < kMostBoxes / 2; ++part) {
            if (part >= boxes) break;
            // Chosen, not indexed: an array in registers has no addresses.
            const int second = boxes == 1 ? rows[1] : rows[2 + part];
            const int row = half == 0 ? rows[part] : second;
            const int token = half * kBlockTokens + part * box_tokens_;
            copy_box(to + part * box_tokens_ * 128, maps_.cache, barrier, chunk, row,
                     max(min(left - token, box_tokens_), 0));
        }
    }

    // This block's half of the tokens.
    __device__ void copy_keys(const int (&rows)[kMostBoxes], int left) {
        for (int chunk = 0; chunk < kChunks; chunk += kStageChunks) {
            const int chunks = min(kStageChunks, kChunks - chunk);
            const int stage = next_stage(chunks);
            if (lane_ == 0) copy_stage(stage, chunk, chunks, rows, work_.rank, left);
        }
    }

    // This block's half of the columns of every product.
    __device__ void copy_values(const int (&rows)[kMostBoxes], int left) {
        for (int half = 0; half < 2; ++half) {
            for (int part = 0; part < kSumParts; ++part) {
                const int stage = next_stage(kStageChunks);
                const int chunk = part * (kSumColumns / 64) + work_.rank * kStageChunks;
                if (lane_ == 0) copy_stage(stage, chunk, kStageChunks, rows, half, left);
            }
        }
    }

    const Arguments& a_;
    const Maps& maps_;
    const Work work_;
    Memory& shared_;
    const int lane_;
    const int box_tokens_;
    Ring<kFp8 ? kCodeStages : Memory::kStages> ring_;
    unsigned queries_turn_ = 0;
};

}  // namespace mla::blackwell
