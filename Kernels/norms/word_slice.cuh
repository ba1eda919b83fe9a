// A thread's share of a row of whole words, of 4 or 8 bytes, for few or short rows at any address:
// a packet is four or two words, each beside those of the thread's neighbours. None straddles an
// end of the row, so no load waits for another.
#pragma once

#include <cstdint>
#include <cstring>

#include "Kernels/device/convert.cuh"

namespace norms {

// As device::RowSlice, in a single chunk.
template <class T, int kVectors, class Word>
class WordSlice {
  public:
    static constexpr int kPer = device::kPerPacket<T>;
    using Packets = uint4[kVectors];
    using Values = float[kPer];

    template <class Team>
    __device__ WordSlice(const Team& team, const T*, int columns, bool active)
        : words_(active ? columns / kPerWord : 0), first_(team.place()), step_(team.threads()) {}

    // Whether an element of a packet belongs to the row.
    __device__ bool holds(int vector, int element) const {
        return at(vector, element / kPerWord) < words_;
    }

    // The column of a packet's element, and whether one of this thread's packets has that column.
    __device__ int column(int vector, int element) const {
        return at(vector, element / kPerWord) * kPerWord + element % kPerWord;
    }
    __device__ bool owns(int index) const {
        const int offset = index / kPerWord - first_;
        return offset >= 0 && offset % step_ == 0;
    }

    // Elements outside the row become `outside`.
    __device__ void load(const T* row, int, Packets& packets, float outside = 0.0f) const {
        Values nothing;
#pragma unroll
        for (float& each : nothing) each = outside;
#pragma unroll
        for (int vector = 0; vector < kVectors; ++vector) {
            packets[vector] = words_of(row, vector, device::pack<T>(nothing));
        }
    }

    __device__ void store(T* row, int chunk, int vector, const Values& values) const {
        store_packet(row, chunk, vector, device::pack<T>(values));
    }
    __device__ void store_packet(T* row, int, int vector, const uint4& packet) const {
        Word words[kWords];
        std::memcpy(words, &packet, sizeof(packet));
        auto* to = reinterpret_cast<Word*>(row);
#pragma unroll
        for (int word = 0; word < kWords; ++word) {
            if (at(vector, word) < words_) to[at(vector, word)] = words[word];
        }
    }

    // The elements of a vector that all rows share, packed if it is of type T and `wanted`.
    __device__ uint4 shared_packet(const T* elements, int vector, bool wanted) const {
        return words_of(elements, vector, uint4{}, wanted);
    }
    // The same of type fp32.
    __device__ void shared_floats(const float* floats, int vector, Values& values) const {
#pragma unroll
        for (int element = 0; element < kPer; ++element) {
            const int word = at(vector, element / kPerWord);
            values[element] =
                word < words_ ? __ldg(floats + word * kPerWord + element % kPerWord) : 0.0f;
        }
    }

  private:
    static constexpr int kPerWord = static_cast<int>(sizeof(Word) / sizeof(T));
    static constexpr int kWords = kPer / kPerWord;

    __device__ int at(int vector, int word) const {
        return first_ + (vector * kWords + word) * step_;
    }

    __device__ uint4 words_of(const T* elements, int vector, const uint4& nothing,
                              bool wanted = true) const {
        const auto* from = reinterpret_cast<const Word*>(elements);
        Word words[kWords];
        std::memcpy(words, &nothing, sizeof(nothing));
#pragma unroll
        for (int word = 0; word < kWords; ++word) {
            if (wanted && at(vector, word) < words_) words[word] = from[at(vector, word)];
        }
        uint4 packet;
        std::memcpy(&packet, words, sizeof(packet));
        return packet;
    }

    const int words_;
    const int first_;
    const int step_;
};

}  // namespace norms
