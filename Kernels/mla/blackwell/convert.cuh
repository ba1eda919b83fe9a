// Conversion of an FP8 cache in Blackwell's latent-attention kernel: a warpgroup per block turns
// the codes of a stage into chunks of the queries' type, as the products read them.
#pragma once

#include <cstdint>

#include "Kernels/device/ptx/cluster.cuh"
#include "Kernels/device/ptx/mbarrier.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/mla/blackwell/storage.cuh"
#include "Kernels/mla/codes.cuh"

namespace mla::blackwell {

template <class T>
class Converter {
    using Memory = Storage<1>;
    // A thread has 16 codes of each of these rows.
    static constexpr int kRowsAtOnce = kConverterThreads / 8;
    static constexpr int kPackets = kBlockTokens / kRowsAtOnce;

  public:
    __device__ Converter(const Arguments& a, const Work& work, Memory& shared)
        : a_(a), work_(work), shared_(shared), thread_(threadIdx.x % kConverterThreads) {}

    // As many stages as the copies fill, in their order.
    __device__ void run() {
        for (int index = work_.begin; index < work_.end; ++index) {
            const int tiles = tiles_of(a_.workspace.segments[index]);
            for (int stage = 0; stage < tiles * (kKeyStages + kValueStages); ++stage) convert();
        }
    }

  private:
    __device__ __forceinline__ void convert() {
        uint4 packets[kPackets];
        load(packets);
        const int stage = ring_.stage();
        // The products have read what the stage had before.
        wait(&shared_.empty[stage], ring_.parity() ^ 1);
        ++ring_.count;
#pragma unroll
        for (int index = 0; index < kPackets; ++index) store(stage, index, packets[index]);
        // Products may read the chunks.
        ptx::fence_async_proxy();
        __syncwarp();
        if (thread_ % 32 == 0) {
            ptx::mbarrier_arrive_at(ptx::peer_address(&shared_.full[stage], 0));
        }
    }

    // The next stage's codes, whose place is free for others on return.
    __device__ __forceinline__ void load(uint4 (&packets)[kPackets]) {
        const int stage = codes_ring_.stage();
        wait(&shared_.codes_full[stage], codes_ring_.parity());
        ++codes_ring_.count;
        const auto* codes = reinterpret_cast<const uint4*>(shared_.codes[stage]);
#pragma unroll
        for (int index = 0; index < kPackets; ++index) {
            packets[index] = codes[index * kConverterThreads + thread_];
        }
        // Every lane's codes are in registers before copies overwrite them.
        __syncwarp();
        if (thread_ % 32 == 0) ptx::mbarrier_arrive(&shared_.codes_empty[stage]);
    }

    // 16 codes as two packets of a chunk, under the 128-byte swizzle.
    __device__ __forceinline__ void store(int stage, int index, uint4 codes) {
        const int row = index * kRowsAtOnce + thread_ / 8;
        const int chunk = thread_ % 8 / 4;
        const int first = thread_ % 4 * 2;
        std::uint8_t* to = shared_.stages[stage][chunk] + row * 128;
        const uint4 low = widen(codes.x, codes.y), high = widen(codes.z, codes.w);
        // Threads of the second chunk begin with the second packet: the chunks share banks.
        const int turn = chunk;
        *reinterpret_cast<uint4*>(to + ((first + turn) ^ row % 8) * 16) = turn == 0 ? low : high;
        *reinterpret_cast<uint4*>(to + ((first + 1 - turn) ^ row % 8) * 16) =
            turn == 0 ? high : low;
    }

    __device__ __forceinline__ static uint4 widen(std::uint32_t first, std::uint32_t second) {
        return {low_pair(first, T{}), high_pair(first, T{}), low_pair(second, T{}),
                high_pair(second, T{})};
    }

    const Arguments& a_;
    const Work work_;
    Memory& shared_;
    const int thread_;
    Ring<kCodeStages> codes_ring_;
    Ring<Memory::kStages> ring_;
};

}  // namespace mla::blackwell
