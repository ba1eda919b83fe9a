// The tile that Blackwell's kernel is built with.
#pragma once

namespace mla::blackwell {

// A pair of blocks shares it; each has half of the rows.
constexpr int kBlocks = 2;
constexpr int kRows = 128;
constexpr int kTokens = 128;
// Copies take this many tokens of a page, or twice as many where pages have them.
constexpr int kLeastBoxTokens = 32;

}  // namespace mla::blackwell
