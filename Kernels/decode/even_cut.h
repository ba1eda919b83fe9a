// How work is cut, for host and device. If all sequences have the same length the plan is
// arithmetic: a kernel that reads it from memory waits a microsecond longer for its first token.
#pragma once

#include <cstdint>

namespace decode {

// A run of tiles of one sequence and KV head, for one team.
struct alignas(16) Segment {
    std::int32_t sequence;
    std::int32_t kv_head;
    std::int32_t page_begin;
    std::int32_t length;
    std::int32_t tile_begin;
    std::int32_t tile_end;
    // Slot of the partial result; -1 if this is the only part.
    std::int32_t slot;
    std::int32_t first_slot;
    std::int32_t parts;
    // Sequence and head as one index, for the arrival counter.
    std::int32_t item;
    // Index of the share's next segment; -1 after the last.
    std::int32_t next;
    std::int32_t unused;
};

// Division of small integers by a divisor known on the host: exact while dividend times divisor
// stays below 2^32.
struct Divisor {
    std::int32_t value = 1;
    std::uint64_t reciprocal = std::uint64_t{1} << 32;

    constexpr Divisor() = default;
    constexpr explicit Divisor(int by)
        : value(by), reciprocal(((std::uint64_t{1} << 32) + by - 1) / by) {}
    constexpr int quotient(int of) const {
        return static_cast<int>((static_cast<std::uint64_t>(of) * reciprocal) >> 32);
    }
};

// A list of segments that may stand for several KV heads, which are cut alike: entry e is segment
// e * heads + h of the h-th of them.
struct ListCut {
    Divisor heads;
    // Slots of the parts of one head.
    std::int32_t slots = 0;

    constexpr Segment segment(const Segment* list, int number) const {
        const int entry = heads.quotient(number);
        const int head = number - entry * heads.value;
        Segment segment = list[entry];
        segment.kv_head += head;
        segment.item = segment.item * heads.value + head;
        if (segment.slot >= 0) {
            segment.slot += head * slots;
            segment.first_slot += head * slots;
        }
        if (segment.next >= 0) segment.next = segment.next * heads.value + head;
        return segment;
    }
};

// An item is one KV head of one sequence. Either all items are split into the same number of parts,
// and a share is one part; or a share is several whole items.
struct EvenCut {
    // 0: the plan is a list.
    std::int32_t segments = 0;
    Divisor parts;
    Divisor items_per_share;
    Divisor kv_heads;
    // Tiles per part; the first `longer` parts have one more.
    std::int32_t part_tiles = 0;
    std::int32_t longer = 0;
    // Tiles per sequence.
    std::int32_t pages = 0;
    std::int32_t length = 0;

    constexpr int first_segment(int share) const { return share * items_per_share.value; }

    constexpr Segment segment(int number) const {
        const int item = parts.quotient(number);
        const int part = number - item * parts.value;
        const int sequence = kv_heads.quotient(item);
        const int next = number + 1;
        const bool ends_share = first_segment(items_per_share.quotient(next)) == next;
        return {sequence,
                item - sequence * kv_heads.value,
                sequence * pages,
                length,
                begin(part),
                begin(part + 1),
                parts.value == 1 ? -1 : number,
                item * parts.value,
                parts.value,
                item,
                ends_share || next == segments ? -1 : next,
                0};
    }

  private:
    constexpr int begin(int part) const {
        return part * part_tiles + (part < longer ? part : longer);
    }
};

}  // namespace decode
