// The tiles that Hopper's kernel is built with, and when each is used.
#pragma once

#include "Kernels/gemm/config.h"

namespace gemm::hopper {

enum class Use { kNever, kDense, kGroups, kAlways };

struct TileShape {
    int rows;
    int columns;
    int stages;
    int blocks;  // per SM
    Use halves;  // 16-bit operands
    Use scaled;  // FP8 operands
};

inline constexpr TileShape kTiles[] = {
    {128, 256, 3, 1, Use::kAlways, Use::kNever},  {128, 224, 3, 1, Use::kAlways, Use::kNever},
    {128, 192, 4, 1, Use::kAlways, Use::kAlways}, {128, 176, 4, 1, Use::kAlways, Use::kNever},
    {128, 160, 4, 1, Use::kAlways, Use::kNever},  {128, 128, 5, 1, Use::kAlways, Use::kAlways},
    {128, 96, 6, 1, Use::kAlways, Use::kNever},   {128, 64, 8, 1, Use::kNever, Use::kDense},
    {64, 128, 8, 1, Use::kDense, Use::kNever},    {64, 128, 4, 2, Use::kGroups, Use::kAlways},
    {64, 64, 12, 1, Use::kDense, Use::kNever},    {64, 64, 6, 2, Use::kNever, Use::kDense},
    {32, 128, 4, 2, Use::kAlways, Use::kAlways},  {32, 64, 7, 2, Use::kAlways, Use::kAlways},
};

constexpr Use use_of(const TileShape& tile, bool scaled) {
    return scaled ? tile.scaled : tile.halves;
}

}  // namespace gemm::hopper
