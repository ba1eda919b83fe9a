// Splits work of uneven length into even shares for the blocks of a grid: pure host code.
//
// An item (say, a sequence and a head) is a row of tiles. Every block gets a run of tiles that may
// end in the middle of an item and continue into the next: one segment per item that it touches. An
// item of several segments leaves partial results, each in its own slot, to be merged.
#pragma once

#include <vector>

namespace device {

struct Segment {
    int item;
    int tile_begin;
    int tile_end;
    // Slot of this segment's partial result; -1 if the segment is the whole item.
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
    // Fixed cost of a segment, in tiles.
    int segment_cost;
    // Cost of merging parts, if any item has several, in tiles.
    int merge_cost;
};

// The plan whose most expensive block costs least, by these rules; among nearly equal ones, the one
// whose blocks each work on one item: blocks share the memory's bandwidth, so that somewhat uneven
// shares cost less than more parts.
//
// An item without tiles gets an empty segment, so that its result is still written. Throws
// std::invalid_argument for an invalid rule or count.
SplitPlan split(const std::vector<int>& tiles, const SplitRules& rules);

}  // namespace device
