// Every shape gets a config that covers it, bad shapes are rejected by name, and the shapes that
// matter get the intended tile.
#include "Kernels/gemm/config.h"

#include <cstdint>
#include <string>
#include <vector>

#include "Kernels/device/testing.h"
#include "Kernels/gemm/hopper/tiles.h"

namespace {

using gemm::Arch;
using gemm::choose;
using gemm::Config;
using gemm::Dtype;
using gemm::Layout;
using gemm::Shape;
using testing::expect;

constexpr gemm::Machine kHopper = {132, Arch::kHopper};
constexpr gemm::Machine kPortable = kHopper.portable();
constexpr gemm::Machine kBlackwell = {148, Arch::kBlackwell};

void every_shape_has_a_grid() {
    for (const Dtype type : {Dtype::Bf16, Dtype::F16, Dtype::E4m3}) {
        for (const int rows : {1, 8, 127, 128, 4096, 16384, 262144}) {
            for (const int n : {8, 272, 4096, 57344}) {
                for (const int k : {128, 512, 7168, 28672}) {
                    const Shape shape = {rows, n, k, 1, type, Layout::kDense, 0};
                    const Config config = choose(shape, kPortable);
                    expect(config.blocks >= 1 && config.blocks <= 3 * 132, "blocks in range");
                    expect(config.stages >= 3, "enough stages to hide memory");
                    const Config newest = choose(shape, kBlackwell);
                    expect(newest.blocks >= 1 && newest.blocks <= 3 * 148, "blocks in range");
                }
            }
        }
    }
}

void few_rows_get_small_tiles() {
    const auto rows_of = [](Shape shape) { return choose(shape, kPortable).tile_rows; };
    expect(rows_of({16, 4096, 7168, 1, Dtype::Bf16, Layout::kDense, 0}) == 32, "decode");
    expect(rows_of({4096, 4096, 7168, 1, Dtype::Bf16, Layout::kDense, 0}) == 128, "prefill");
    const Shape decode = {8 * 128, 4096, 7168, 8, Dtype::E4m3, Layout::kContiguous, 16};
    expect(rows_of(decode) == 32, "few rows per group");
    const Shape unknown = {8 * 128, 4096, 7168, 8, Dtype::E4m3, Layout::kContiguous, 0};
    expect(rows_of(unknown) == 128, "128 rows per group unless told otherwise");
}

// The tile and its split-K factor.
std::string hopper_choice(const Shape& shape) {
    const Config config = choose(shape, kHopper);
    expect(config.arch == Arch::kHopper && config.blocks >= 1, "a grid");
    return std::to_string(config.tile_rows) + "x" + std::to_string(config.tile_columns) + "/" +
           std::to_string(config.split);
}

void expect_choice(const Shape& shape, const std::string& expected) {
    const std::string choice = hopper_choice(shape);
    expect(choice == expected, choice + " instead of " + expected + " for " +
                                   std::to_string(shape.rows) + "x" + std::to_string(shape.n) +
                                   "x" + std::to_string(shape.k));
}

void hopper_tiles_fit_the_work() {
    const auto dense = [](int rows, int n, int k, const char* halves, const char* scaled) {
        expect_choice({rows, n, k, 1, Dtype::Bf16, Layout::kDense, 0}, halves);
        expect_choice({rows, n, k, 1, Dtype::F16, Layout::kDense, 0}, halves);
        expect_choice({rows, n, k, 1, Dtype::E4m3, Layout::kDense, 0}, scaled);
    };
    dense(8192, 4096, 4096, "128x192/1", "128x192/1");
    dense(2048, 2048, 2048, "128x256/1", "128x128/1");
    // Few steps of k: fewer, wider tiles.
    dense(4096, 32768, 512, "128x192/1", "128x192/1");
    // Whole waves of narrower tiles.
    dense(512, 6144, 4096, "128x192/1", "128x192/1");
    dense(512, 10240, 8192, "128x160/1", "128x160/1");
    dense(512, 4096, 14336, "128x128/1", "128x128/1");
    dense(4096, 2112, 7168, "128x176/1", "128x192/1");
    dense(4096, 7168, 2048, "128x176/1", "128x160/1");
    // Few tiles: narrow ones with split-K.
    dense(64, 2112, 7168, "64x64/3", "64x64/3");
    dense(128, 2112, 7168, "144x64/3", "128x64/3");
    dense(128, 4096, 7168, "144x64/2", "128x64/2");
    // Few rows: as few as that, of the transposed product.
    dense(16, 4096, 4096, "16x64/2", "16x64/2");
    dense(16, 4096, 14336, "16x64/2", "16x64/2");
    dense(16, 10240, 8192, "16x128/2", "32x128/1");
    dense(130, 20736, 1152, "144x192/1", "64x128/1");
    // Too short a k to be worth splitting.
    dense(512, 512, 512, "32x32/1", "64x32/1");
}

// Rows of k that begin within the pieces of 32 bytes that L2 hands out.
void lines_astray_are_loaded_by_pairs() {
    const auto cluster = [](int rows, int n, int k) {
        const Shape shape = {rows, n, k, 1, Dtype::Bf16, Layout::kDense, 0};
        return gemm::hopper::kTiles[choose(shape, kHopper).tile].cluster;
    };
    using gemm::hopper::Cluster;
    expect(cluster(8192, 8192, 8200) == Cluster::kStacked, "large tiles load b together");
    expect(cluster(8192, 8192, 8192) == Cluster::kNone, "whole lines are worth no pair");
    expect(cluster(8192, 8192, 8208) == Cluster::kNone, "nor whole pieces");
    expect(cluster(100, 4096, 7176) != Cluster::kStacked, "nothing is below 100 rows");
}

void hopper_tiles_fit_groups() {
    const auto groups = [](Layout layout, int count, int each, const char* halves,
                           const char* scaled) {
        const int room = layout == Layout::kMasked ? 1024 : count * ((each + 127) / 128 * 128);
        expect_choice({room, 4096, 7168, count, Dtype::Bf16, layout, each}, halves);
        expect_choice({room, 4096, 7168, count, Dtype::E4m3, layout, each}, scaled);
    };
    groups(Layout::kContiguous, 4, 8192, "128x160/1", "128x192/1");
    groups(Layout::kContiguous, 8, 16, "32x128/1", "32x128/1");
    groups(Layout::kContiguous, 1, 32, "32x32/1", "32x64/2");
    // Some masked groups have more rows than expected, and one tile should hold those too.
    groups(Layout::kMasked, 64, 32, "64x128/1", "64x128/1");
    groups(Layout::kMasked, 64, 16, "32x128/1", "32x128/1");
    groups(Layout::kMasked, 1, 32, "64x32/1", "64x32/1");
}

// Even if the list of tiles is too short for low ones.
void every_group_layout_has_a_tile() {
    for (const Dtype type : {Dtype::Bf16, Dtype::F16, Dtype::E4m3}) {
        for (const Layout layout : {Layout::kContiguous, Layout::kMasked}) {
            for (const int count : {1, 7, 256, 3000}) {
                for (const int expected : {0, 1, 33, 100, 5000}) {
                    const int rows = layout == Layout::kContiguous ? count * 128 : 128;
                    const Shape shape = {rows, 272, 1024, count, type, layout, expected};
                    const Config config = choose(shape, kHopper);
                    expect(config.tile_rows >= 32 && config.blocks >= 1, "a tile");
                    expect(layout != Layout::kMasked || config.split == 1, "no split of masked");
                }
            }
        }
    }
    // There would be 4096 low tiles; the list holds 3072.
    const Shape crowded = {1024, 4096, 7168, 128, Dtype::E4m3, Layout::kMasked, 16};
    expect(choose(crowded, kHopper).tile_rows == 64, "a tile that can be listed");
}

// A split-K cluster has one tile, every tile gets a cluster, and there are enough steps for all.
void split_grids_cover_all_tiles() {
    for (const Dtype type : {Dtype::Bf16, Dtype::E4m3}) {
        for (const int rows : {1, 33, 64, 65, 128, 500, 2048}) {
            for (const int n : {8, 272, 2112, 4096, 57344}) {
                for (const int k : {128, 512, 7168, 28672}) {
                    const Shape shape = {rows, n, k, 1, type, Layout::kDense, 0};
                    const Config config = choose(shape, kHopper);
                    const int tiles = (rows + config.tile_rows - 1) / config.tile_rows *
                                      ((n + config.tile_columns - 1) / config.tile_columns);
                    expect(config.split >= 1 && config.split <= 8, "clusters of up to eight");
                    if (config.split == 1) continue;
                    expect(config.blocks == tiles * config.split, "a cluster for each tile");
                    expect(config.blocks <= 2 * 132, "all clusters at once");
                    expect(k * device::bytes_of(type) / 128 >= 4 * config.split, "steps for all");
                }
            }
        }
    }
}

void bad_shapes_are_named() {
    const auto refused = [](Shape shape, const char* word) {
        testing::expect_refused([&] { gemm::validate(shape); }, word);
    };
    refused({0, 8, 128, 1, Dtype::Bf16, Layout::kDense, 0}, "rows");
    refused({1, 4, 128, 1, Dtype::Bf16, Layout::kDense, 0}, "n is 4");
    refused({1, 8, 100, 1, Dtype::Bf16, Layout::kDense, 0}, "k is 100");
    refused({1, 8, 64, 1, Dtype::E4m3, Layout::kDense, 0}, "multiples of 128");
    refused({100, 8, 128, 2, Dtype::E4m3, Layout::kContiguous, 0}, "multiples of 128");
    refused({1, 8, 64, 1, Dtype::Nvfp4, Layout::kDense, 0}, "multiples of 128");
    refused({1, 8, 64, 1, Dtype::Fp8Ue8m0, Layout::kDense, 0}, "multiples of 128");
    refused({1, 8, 192, 1, Dtype::Mxfp4, Layout::kDense, 0}, "multiples of 128");
    refused({100, 8, 128, 2, Dtype::Bf16, Layout::kDense, 0}, "dense product");
    refused({8192, 8, 128, 128, Dtype::Bf16, Layout::kMasked, 0}, "at most");
}

// H200s, B200s, GB200s, B300s, smaller cards, slices of them, and what an interpreter has: odd,
// too.
constexpr int kCounts[] = {1, 2, 4, 5, 6, 7, 16, 37, 78, 114, 132, 142, 148, 152, 160};

// Blocks, or the clusters that share a tile, take tiles in turn: each tile has one of them, and
// none is without.
void expect_covered(const Shape& shape, const gemm::Machine& machine) {
    const Config config = choose(shape, machine);
    const bool is_blackwell = config.arch == Arch::kBlackwell;
    const std::string name = describe(config) + " on " + std::to_string(machine.multiprocessors) +
                             " SMs for " + std::to_string(shape.rows) + "x" +
                             std::to_string(shape.n) + "x" + std::to_string(shape.k);
    const bool hopper_pair =
        config.arch == Arch::kHopper && gemm::hopper::kTiles[config.tile].pairs();
    const int together = is_blackwell ? config.tile_rows / 128 : hopper_pair ? 2 : config.split;
    expect(config.blocks >= 1 && config.blocks % together == 0, name + ": whole clusters");
    // A cluster that shares k has one tile, and may wait for its turn as a whole.
    const int most = is_blackwell ? 1 : 3;
    expect(config.split > 1 || config.blocks <= most * machine.multiprocessors, name + ": at once");
    const std::int64_t tiles = shape.row_tiles_at_most(config.tile_rows) *
                               ((shape.n + config.tile_columns - 1) / config.tile_columns);
    const int clusters = config.blocks / together;
    expect(clusters <= tiles, name + ": none without a tile");
    std::vector<int> taken(tiles);
    for (int cluster = 0; cluster < clusters; ++cluster) {
        for (std::int64_t tile = cluster; tile < tiles; tile += clusters) ++taken[tile];
    }
    for (const int times : taken) expect(times == 1, name + ": every tile once");
}

void every_machine_covers_all_tiles() {
    for (const int count : kCounts) {
        for (const Arch arch : {Arch::kPortable, Arch::kHopper, Arch::kBlackwell}) {
            const gemm::Machine machine = {count, arch};
            for (const Dtype type : {Dtype::Bf16, Dtype::E4m3, Dtype::Mxfp8}) {
                if (type == Dtype::Mxfp8 && arch != Arch::kBlackwell) continue;
                for (const int rows : {1, 100, 129, 1000, 4096}) {
                    for (const int n : {8, 520, 2112, 7168}) {
                        for (const int k : {128, 7168}) {
                            expect_covered({rows, n, k, 1, type, Layout::kDense, 0}, machine);
                        }
                        if (type != Dtype::Bf16) continue;
                        expect_covered({rows, n, 7176, 1, type, Layout::kDense, 0}, machine);
                    }
                }
                for (const Layout layout : {Layout::kContiguous, Layout::kMasked}) {
                    expect_covered({1024, 520, 7168, 8, type, layout, 0}, machine);
                }
            }
        }
    }
}

}  // namespace

void pairs_leave_an_odd_multiprocessor_idle() {
    const auto choice = [](int multiprocessors, int n) {
        const Shape shape = {256, n, 4096, 1, Dtype::Bf16, Layout::kDense, 0};
        const Config config = choose(shape, {multiprocessors, Arch::kBlackwell});
        return std::to_string(config.tile_rows) + "x" + std::to_string(config.tile_columns) + "/" +
               std::to_string(config.blocks);
    };
    expect(choice(4, 512) == "256x256/4", "two tiles of two pairs");
    expect(choice(5, 512) == "256x256/4", "and one SM without: " + choice(5, 512));
    expect(choice(1, 512).substr(0, 4) == "128x", "no pair on one");
}

void blackwell_pairs_share_large_tiles() {
    const auto choice = [](const Shape& shape) {
        const Config config = choose(shape, kBlackwell);
        return device::to_string(config.arch) + " " + std::to_string(config.tile_rows) + "x" +
               std::to_string(config.tile_columns);
    };
    const auto dense = [](int rows, int n, int k) {
        return Shape{rows, n, k, 1, Dtype::Bf16, Layout::kDense, 0};
    };
    expect(choice(dense(8192, 8192, 8192)) == "blackwell 256x256", "two blocks share a tile");
    expect(choice(dense(16, 4096, 7168)) == "blackwell 128x64", "many blocks read the weights");
    const Shape groups = {8 * 512, 4096, 7168, 8, Dtype::Bf16, Layout::kContiguous, 0};
    expect(choice(groups).substr(0, 13) == "blackwell 128", "no tile spans two groups");
    Shape scaled = dense(4096, 4096, 7168);
    scaled.dtype = Dtype::E4m3;
    expect(choice(scaled) == "blackwell 256x128", "each block promotes the sums of its rows");
    scaled.rows = 16;
    expect(choice(scaled) == "blackwell 128x128", "no pair for a few rows");
    expect(choose(dense(8192, 8192, 8192), kBlackwell).blocks == 148, "all multiprocessors");
}

void groups_with_block_scales_have_tiles_of_one_block() {
    for (const Dtype type : {Dtype::Fp8Ue8m0, Dtype::Mxfp8, Dtype::Nvfp4, Dtype::Mxfp4}) {
        for (const Layout layout : {Layout::kContiguous, Layout::kMasked}) {
            const Config config = choose({1024, 520, 384, 8, type, layout, 0}, kBlackwell);
            expect(config.tile_rows == 128 && config.tile_columns == 128, "no tile of two groups");
        }
    }
}

void block_scales_need_tensor_cores_that_apply_them() {
    for (const Dtype type : {Dtype::Fp8Ue8m0, Dtype::Mxfp8, Dtype::Nvfp4, Dtype::Mxfp4}) {
        for (const int rows : {1, 129, 8192}) {
            const Shape shape = {rows, 520, 384, 1, type, Layout::kDense, 0};
            const Config config = choose(shape, kBlackwell);
            const bool single = config.tile_rows == 128 && config.tile_columns == 128;
            const bool paired = config.tile_rows == 256 && config.tile_columns == 192;
            expect(rows == 1 ? single : paired, "a pair where there are rows for both");
            expect(config.blocks >= 1 && config.blocks <= 148, "blocks in range");
            for (const gemm::Machine& machine : {kHopper, kPortable}) {
                testing::expect_refused([&] { choose(shape, machine); }, "those of tcgen05");
            }
        }
    }
}

int main() {
    every_shape_has_a_grid();
    few_rows_get_small_tiles();
    hopper_tiles_fit_the_work();
    lines_astray_are_loaded_by_pairs();
    hopper_tiles_fit_groups();
    every_group_layout_has_a_tile();
    split_grids_cover_all_tiles();
    every_machine_covers_all_tiles();
    pairs_leave_an_odd_multiprocessor_idle();
    blackwell_pairs_share_large_tiles();
    groups_with_block_scales_have_tiles_of_one_block();
    block_scales_need_tensor_cores_that_apply_them();
    bad_shapes_are_named();
    std::puts("passed");
}
