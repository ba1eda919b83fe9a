// Cuts work of uneven length into even shares for the blocks of a grid: pure host code.
//
// An item (a sequence and a head, say) is a row of tiles. Every block gets a run of tiles that may
// end in the middle of an item and go on into the next: a segment per item that it touches. An item
// of several segments leaves partial results, each in a slot of its own, to be merged.
#pragma once

#include <vector>

namespace device {

struct Segment {
    int item;
    int tile_begin;
    int tile_end;
    // Slot of this segment's partial result; -1 where the segment is the whole item.
    int slot;
    // Slot of the item's first segment, and how many segments it has.
    int first_slot;
    int parts;
};

struct SplitPlan {
    std::vector<Segment> segments;
    // Segments of block b: block_begin[b] to block_begin[b + 1].
    std::vector<int> block_begin;
    int slots = 0;

    int blocks() const { return static_cast<int>(block_begin.size()) - 1; }
};

struct SplitRules {
    // Blocks that run at once.
    int blocks_max;
    // Tiles that are worth a block.
    int tiles_min;
    // What a segment costs besides its tiles, in tiles.
    int segment_cost;
};

// An item without tiles gets an empty segment, so that somebody writes its result.
// Throws std::invalid_argument where a rule or a count makes no sense.
SplitPlan split(const std::vector<int>& tiles, const SplitRules& rules);

}  // namespace device
