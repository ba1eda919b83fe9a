// A thread's share of a row at any address, cut at the row's own packets: the same columns in every
// row, so that sums over rows stay in registers. In memory those packets straddle two.
#pragma once

#include <cstdint>
#include <type_traits>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/memory.cuh"

namespace norms {

// The packet that begins `skipped` elements into `low` and ends in `high`.
template <class T>
__device__ uint4 cut_packet(const uint4& low, const uint4& high, int skipped) {
    constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
    const uint32_t words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const int whole = skipped / kPerWord;
    uint32_t by_two[6];
#pragma unroll
    for (int i = 0; i < 6; ++i) by_two[i] = whole & 2 ? words[i + 2] : words[i];
    uint32_t by_one[5];
#pragma unroll
    for (int i = 0; i < 5; ++i) by_one[i] = whole & 1 ? by_two[i + 1] : by_two[i];
    const uint32_t bits = skipped % kPerWord * 16;
    return {
        __funnelshift_r(by_one[0], by_one[1], bits), __funnelshift_r(by_one[1], by_one[2], bits),
        __funnelshift_r(by_one[2], by_one[3], bits), __funnelshift_r(by_one[3], by_one[4], bits)};
}

// The first `held` elements of a packet, and zeros.
template <class T>
__device__ uint4 first_elements(const uint4& packet, int held) {
    constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
    uint32_t words[4] = {packet.x, packet.y, packet.z, packet.w};
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        const int left = held - word * kPerWord;
        if (left <= 0) words[word] = 0;
        if (kPerWord == 2 && left == 1) words[word] &= 0xffffu;
    }
    return {words[0], words[1], words[2], words[3]};
}

// As device::RowSlice, of a block whose threads hold neighbouring packets; it is never inactive.
template <class T, int kVectors>
class ShiftedSlice {
  public:
    static constexpr int kPer = device::kPerPacket<T>;
    using Packets = uint4[kVectors];
    using Values = float[kPer];

    // `row` gives the shift against memory's packets, which all tensors share.
    template <class Team>
    __device__ ShiftedSlice(const Team& team, const T* row, int columns, bool)
        : columns_(columns),
          begin_(team.place() * kPer),
          step_(team.threads() * kPer),
          shift_(static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(T) % kPer)) {}

    __device__ int first(int, int vector) const { return begin_ + vector * step_; }
    __device__ bool holds(int index) const { return index < columns_; }

    // `packet_at(i)` returns the packet of memory that begins i elements after the one in which the
    // row begins.
    template <class PacketAt>
    __device__ void load_with(int chunk, Packets& packets, PacketAt&& packet_at) const {
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) {
            const int begin = first(chunk, vector);
            packets[vector] = uint4{};
            if (!holds(begin)) continue;
            packets[vector] = cut_packet<T>(packet_at(begin), packet_at(begin + kPer), shift_);
            if (begin + kPer > columns_) {
                packets[vector] = first_elements<T>(packets[vector], columns_ - begin);
            }
        }
    }

    // All threads of a warp call it together. A packet of memory is the end of one thread's and the
    // beginning of the next one's, which stores it. Where a warp or the row ends, everyone stores
    // what is left element by element.
    __device__ void store(T* row, int chunk, int vector, const Values& values) const {
        const uint4 own = device::pack<T>(values);
        const uint4 previous = {
            __shfl_up_sync(0xffffffffu, own.x, 1), __shfl_up_sync(0xffffffffu, own.y, 1),
            __shfl_up_sync(0xffffffffu, own.z, 1), __shfl_up_sync(0xffffffffu, own.w, 1)};
        const int begin = first(chunk, vector);
        const int held = columns_ - begin;
        if (held <= 0) return;
        const int lane = static_cast<int>(threadIdx.x % 32);
        const int head = kPer - shift_;
        const bool stores = (lane > 0 || shift_ == 0) && held >= head;
        const bool next_stores = (lane < 31 || shift_ == 0) && held - kPer >= head;
        if (stores) {
            const uint4 packet = shift_ == 0 ? own : cut_packet<T>(previous, own, head);
            device::ptx::store_16(row + begin - shift_, packet);
        }
        const int from = stores ? head : 0;
        const int to = next_stores ? head : min(held, kPer);
        if (from >= to) return;
        using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
        const uint32_t words[4] = {own.x, own.y, own.z, own.w};
#pragma unroll
        for (int element = 0; element < kPer; ++element) {
            if (element < from || element >= to) continue;
            const uint32_t word = words[element * static_cast<int>(sizeof(T)) / 4];
            reinterpret_cast<Bits*>(row)[begin + element] =
                static_cast<Bits>(sizeof(T) == 2 && element % 2 == 1 ? word >> 16 : word);
        }
    }

  private:
    const int columns_;
    const int begin_;
    const int step_;
    const int shift_;
};

}  // namespace norms
