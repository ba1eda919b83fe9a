// A thread's share of one row: up to kVectors 16-byte packets per chunk.
//
// Packet p of a row belongs to thread p % threads of the team, so that loads are coalesced. Rows
// longer than threads * kVectors packets are walked in chunks.
//
// kAligned: every row starts at a 16-byte boundary and holds whole packets. kWide: the same of 32
// bytes, which move as one; a thread then has pairs of neighbouring packets, and stores those of a
// row one after the other.
// Otherwise packets are cut at 16-byte boundaries of memory, not of the row: all inner packets
// still move as 16 bytes, and the two that straddle the row's ends move element by element.
#pragma once

#include <cstdint>
#include <type_traits>

#include "Kernels/device/convert.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/row_team.cuh"

namespace device {

template <class T, int kVectors, bool kAligned, bool kWide = false>
class RowSlice {
    static_assert(!kWide || (kAligned && kVectors % 2 == 0), "whole pairs of packets");

  public:
    static constexpr int kPer = kPerPacket<T>;
    using Packets = uint4[kVectors];
    using Values = float[kPer];

    // `row` gives the alignment; every tensor of the row must share it. `active` is false for rows
    // past the last one, whose threads only take part in reductions.
    __device__ RowSlice(const RowTeam& team, const T* row, int columns, bool active)
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
    // How many elements of the packet belong to the row.
    __device__ int held(int chunk, int vector) const {
        const int begin = first(chunk, vector);
        if constexpr (kAligned) return begin < columns_ ? kPer : 0;
        return max(0, min(begin + kPer, columns_) - max(begin, 0));
    }

    // From a source other than memory: `packet_at(i)` returns the packet that begins at element i.
    template <class PacketAt>
    __device__ void load_with(int chunk, Packets& packets, float outside,
                              PacketAt&& packet_at) const {
        static_assert(kAligned, "packets at the ends of a row need memory");
        const uint4 nothing = packet_of(outside);
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) {
            const int begin = first(chunk, vector);
            packets[vector] = is_whole(begin) ? packet_at(begin) : nothing;
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
            return;
        }
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) {
            const int begin = first(chunk, vector);
            packets[vector] = nothing;
            if (is_whole(begin)) {
                packets[vector] = ptx::load_16(row + begin);
            } else if (!kAligned && begin < columns_) {
                packets[vector] = load_edge(row, begin, nothing);
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
        } else if (!kAligned && begin < columns_) {
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

    __device__ bool is_whole(int begin) const {
        if constexpr (kAligned) return begin < columns_;
        return begin >= 0 && begin + kPer <= columns_;
    }

    // Rolled loops, because at most two packets per row come here: elements enter at the top of a
    // 128-bit shift register and leave at the bottom.
    __device__ uint4 load_edge(const T* row, int begin, uint4 nothing) const {
        constexpr int kBits = 8 * static_cast<int>(sizeof(T));
        uint64_t low = nothing.x | static_cast<uint64_t>(nothing.y) << 32;
        uint64_t high = low;
#pragma unroll 1
        for (int element = 0; element < kPer; ++element) {
            const bool inside = holds(begin + element);
            const uint64_t bits = inside ? bits_of(row[begin + element]) : low_bits(nothing.x);
            low = low >> kBits | high << (64 - kBits);
            high = high >> kBits | bits << (64 - kBits);
        }
        return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
    }
    __device__ void store_edge(T* row, int begin, uint4 packet) const {
        constexpr int kBits = 8 * static_cast<int>(sizeof(T));
        uint64_t low = packet.x | static_cast<uint64_t>(packet.y) << 32;
        uint64_t high = packet.z | static_cast<uint64_t>(packet.w) << 32;
#pragma unroll 1
        for (int element = 0; element < kPer; ++element) {
            if (holds(begin + element)) {
                using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
                reinterpret_cast<Bits*>(row)[begin + element] = static_cast<Bits>(low);
            }
            low = low >> kBits | high << (64 - kBits);
            high >>= kBits;
        }
    }
    static __device__ uint32_t low_bits(uint32_t word) {
        return sizeof(T) == 4 ? word : word & 0xffffu;
    }

    struct Nothing {};

    const int columns_;
    int begin_;
    const int step_;
    // Waits for the other, in a register: loops over vectors are unrolled.
    mutable std::conditional_t<kWide, uint4, Nothing> first_of_pair_;
};

}  // namespace device
