// A thread's share of one row: up to kVectors 16-byte packets per chunk.
//
// Packet p of a row belongs to thread p % threads of the team, so that loads are coalesced. Rows
// longer than threads * kVectors packets are walked in chunks.
//
// kAligned: every row starts at a 16-byte boundary and holds whole packets. kWide: the same of 32
// bytes, which move as one; a thread then has pairs of neighbouring packets, and stores those of a
// row one after the other.
// Otherwise packets are cut at 16-byte boundaries of memory, not of the row: all inner packets
// still move as 16 bytes, and the two that straddle the row's ends in smaller pieces. kEdgesApart:
// those wait for each other in branches, so that threads without them do not; otherwise all are
// loaded before any is used.
#pragma once

#include <cstdint>
#include <type_traits>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/row_team.cuh"

namespace device {

template <class T, int kVectors, bool kAligned, bool kWide = false, bool kEdgesApart = false>
class RowSlice {
    static_assert(!kWide || (kAligned && kVectors % 2 == 0), "whole pairs of packets");

  public:
    static constexpr int kPer = kPerPacket<T>;
    using Packets = uint4[kVectors];
    using Values = float[kPer];

    // `row` gives the alignment; every tensor of the row must share it. `active` is false for rows
    // past the last one, whose threads only take part in reductions.
    template <class Team>
    __device__ RowSlice(const Team& team, const T* row, int columns, bool active)
        : columns_(active ? columns : 0),
          begin_(team.place() * kPer * (kWide ? 2 : 1)),
          step_(team.threads() * kPer) {
        if constexpr (!kAligned) {
            begin_ -= static_cast<int>(reinterpret_cast<uintptr_t>(row) / sizeof(T) % kPer);
        }
    }

    // Row index of the packet's first element; negative for a first packet that begins earlier.
    __device__ int first(int chunk, int vector) const {
        if constexpr (kWide) {
            return begin_ + (chunk * kVectors + vector / 2 * 2) * step_ + vector % 2 * kPer;
        }
        return begin_ + (chunk * kVectors + vector) * step_;
    }
    __device__ bool holds(int index) const { return index < columns_ && (kAligned || index >= 0); }
    // Whether an element of the row is in one of this thread's packets.
    __device__ bool owns(int index) const {
        constexpr int kNeighbours = kWide ? 2 : 1;
        const int offset = index - begin_;
        return offset >= 0 && offset % (kNeighbours * step_) < kNeighbours * kPer;
    }
    // How many elements of the packet belong to the row.
    __device__ int held(int chunk, int vector) const {
        const int begin = first(chunk, vector);
        if constexpr (kAligned) return begin < columns_ ? kPer : 0;
        return max(0, min(begin + kPer, columns_) - max(begin, 0));
    }

    // From a source other than memory: `packet_at(vector, i)` returns the packet that begins at
    // element i.
    template <class PacketAt>
    __device__ void load_with(int chunk, Packets& packets, float outside,
                              PacketAt&& packet_at) const {
        static_assert(kAligned, "packets at the ends of a row need memory");
        const uint4 nothing = packet_of(outside);
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) {
            const int begin = first(chunk, vector);
            packets[vector] = is_whole(begin) ? packet_at(vector, begin) : nothing;
        }
    }

    // Elements outside the row become `outside`.
    __device__ void load(const T* row, int chunk, Packets& packets, float outside = 0.0f) const {
        const uint4 nothing = packet_of(outside);
        if constexpr (kWide) {
#pragma unroll
            for (int vector = 0; vector < kVectors; vector += 2) {
                const int begin = first(chunk, vector);
                uint4 both[2] = {nothing, nothing};
                if (is_whole(begin)) ptx::load_32(row + begin, both);
                packets[vector] = both[0];
                packets[vector + 1] = both[1];
            }
        } else {
#pragma unroll
            for (int vector = 0; vector < kVectors; ++vector) {
                const int begin = first(chunk, vector);
                packets[vector] = nothing;
                if (is_whole(begin)) {
                    packets[vector] = ptx::load_16(row + begin);
                } else if (!kAligned && has_some(begin)) {
                    packets[vector] = load_edge(row, begin, nothing);
                }
            }
        }
    }

    __device__ void store(T* row, int chunk, int vector, const Values& values) const {
        store_packet(row, chunk, vector, pack<T>(values));
    }
    __device__ void store_packet(T* row, int chunk, int vector, uint4 packet) const {
        if constexpr (kWide) {
            if (vector % 2 == 0) {
                first_of_pair_ = packet;
                return;
            }
            const uint4 both[2] = {first_of_pair_, packet};
            const int begin = first(chunk, vector - 1);
            if (is_whole(begin)) ptx::store_32(row + begin, both);
            return;
        }
        const int begin = first(chunk, vector);
        if (is_whole(begin)) {
            ptx::store_16(row + begin, packet);
        } else if (!kAligned && has_some(begin)) {
            store_edge(row, begin, packet);
        }
    }

    // The elements of a vector that all rows share (weight, bias), of type fp32 (`wide`) or T.
    __device__ void shared_values(const void* vector_of_columns, bool wide, int chunk, int vector,
                                  Values& values) const {
        const int begin = first(chunk, vector);
        const float* floats = static_cast<const float*>(vector_of_columns);
        const T* elements = static_cast<const T*>(vector_of_columns);
        if constexpr (kAligned) {
            if (begin >= columns_) return;
            if (sizeof(T) == 4 || wide) {
#pragma unroll
                for (int quad = 0; quad < kPer; quad += 4) {
                    float four[4];
                    unpack<float>(ptx::load_16_constant(floats + begin + quad), four);
#pragma unroll
                    for (int element = 0; element < 4; ++element) {
                        values[quad + element] = four[element];
                    }
                }
            } else {
                unpack<T>(ptx::load_16_constant(elements + begin), values);
            }
        } else {
#pragma unroll
            for (int element = 0; element < kPer; ++element) {
                // Clamped, not skipped: values outside the row are never used.
                const int index = max(min(begin + element, columns_ - 1), 0);
                values[element] =
                    sizeof(T) == 4 || wide ? __ldg(floats + index) : to_float(elements[index]);
            }
        }
    }

    // The same, packed, of an aligned vector of type T, for rows that are not: a packet of the row
    // is cut from two of the vector. What is outside the row is anything.
    __device__ uint4 shared_packet(const T* elements, int chunk, int vector) const {
        static_assert(!kAligned, "whole packets need no cutting");
        const int begin = first(chunk, vector);
        const int offset = begin & (kPer - 1);
        const uint4 low = columns_packet(elements, begin - offset);
        const uint4 high = columns_packet(elements, begin - offset + kPer);
        const uint32_t words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        const int skipped = offset / kPerWord;
        uint32_t by_two[6];
#pragma unroll
        for (int i = 0; i < 6; ++i) by_two[i] = skipped & 2 ? words[i + 2] : words[i];
        uint32_t by_one[5];
#pragma unroll
        for (int i = 0; i < 5; ++i) by_one[i] = skipped & 1 ? by_two[i + 1] : by_two[i];
        const uint32_t bits = offset % kPerWord * 16;
        uint32_t cut[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) cut[i] = __funnelshift_r(by_one[i], by_one[i + 1], bits);
        return {cut[0], cut[1], cut[2], cut[3]};
    }

  private:
    // The bits of one element, in the low end of a word.
    static __device__ uint32_t bits_of(T value) {
        uint32_t bits = 0;
        memcpy(&bits, &value, sizeof(T));
        return bits;
    }
    static __device__ uint4 packet_of(float value) {
        Values values;
#pragma unroll
        for (float& each : values) each = value;
        return pack<T>(values);
    }

    // Packet `begin`, a multiple of kPer, of a vector of columns.
    __device__ uint4 columns_packet(const T* elements, int begin) const {
        if (begin >= 0 && begin + kPer <= columns_) return ptx::load_16_constant(elements + begin);
        return has_some(begin) && begin >= 0 ? load_edge(elements, begin, uint4{}) : uint4{};
    }

    __device__ bool is_whole(int begin) const {
        if constexpr (kAligned) return begin < columns_;
        return begin >= 0 && begin + kPer <= columns_;
    }
    // No packet ends before the row begins.
    __device__ bool has_some(int begin) const { return max(begin, 0) < columns_; }

    // A packet that straddles an end of the row: whole words, and an element at either end that is
    // half a word.
    static constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
    struct Edge {
        int first;  // element of the packet in the row
        int end;

        __device__ bool holds_word(int word) const {
            return word * kPerWord >= first && (word + 1) * kPerWord <= end;
        }
        __device__ bool begins_within(int word) const {
            return kPerWord == 2 && first == 2 * word + 1;
        }
        __device__ bool ends_within(int word) const { return kPerWord == 2 && end == 2 * word + 1; }
    };
    __device__ Edge edge_of(int begin) const {
        return {max(-begin, 0), min(columns_ - begin, kPer)};
    }

    __device__ uint4 load_edge(const T* row, int begin, uint4 nothing) const {
        const uint32_t lower = kPerWord == 2 ? nothing.x & 0xffffu : nothing.x;
        const auto element = [&](int index) {
            return holds(begin + index) ? bits_of(row[begin + index]) : lower;
        };
        const Edge edge = edge_of(begin);
        uint32_t words[4];
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            const int first = word * kPerWord;
            if constexpr (kPerWord == 1) {
                words[word] = element(first);
            } else if constexpr (!kEdgesApart) {
                words[word] = element(first) | element(first + 1) << 16;
            } else {
                words[word] = nothing.x;
                if (edge.holds_word(word)) {
                    words[word] = *reinterpret_cast<const uint32_t*>(row + begin + first);
                }
                if (edge.begins_within(word)) words[word] = lower | element(first + 1) << 16;
                if (edge.ends_within(word)) words[word] = element(first) | lower << 16;
            }
        }
        return {words[0], words[1], words[2], words[3]};
    }
    __device__ void store_edge(T* row, int begin, uint4 packet) const {
        using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
        const Edge edge = edge_of(begin);
        const uint32_t words[4] = {packet.x, packet.y, packet.z, packet.w};
        auto* to = reinterpret_cast<uint32_t*>(row + begin);
        auto* elements = reinterpret_cast<Bits*>(row + begin);
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            if (edge.holds_word(word)) to[word] = words[word];
            if (edge.begins_within(word)) {
                elements[2 * word + 1] = static_cast<Bits>(words[word] >> 16);
            }
            if (edge.ends_within(word)) elements[2 * word] = static_cast<Bits>(words[word]);
        }
    }

    struct Nothing {};

    const int columns_;
    int begin_;
    const int step_;
    // Waits for the other, in a register: loops over vectors are unrolled.
    mutable std::conditional_t<kWide, uint4, Nothing> first_of_pair_;
};

}  // namespace device
