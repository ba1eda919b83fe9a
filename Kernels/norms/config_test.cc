// Every shape gets a config that covers it, and the shapes that matter get the intended one.
#include "Kernels/norms/config.h"

#include <string>

#include "Kernels/device/testing.h"

namespace {

using device::Dtype;
using norms::choose;
using norms::Config;
using norms::Matrix;
using norms::RowUse;
using testing::expect;

constexpr norms::Machine kMachine = {132};
constexpr RowUse kUses[] = {RowUse::kOneRow,       RowUse::kCentredRow, RowUse::kRowAlone,
                            RowUse::kExponentials, RowUse::kReadOnce,   RowUse::kTwoRows,
                            RowUse::kInPlace,      RowUse::kAccumulate, RowUse::kAccumulateBoth};

void every_shape_is_covered(const norms::Machine& machine) {
    const int columns[] = {
        1,     2,     3,      7,      8,      9,      31,     32,     33,
        63,    64,    65,     127,    128,    129,    255,    256,    257,
        511,   512,   513,    1000,   1023,   1024,   1025,   2048,   3072,
        4095,  4096,  6144,   7168,   8191,   8192,   12288,  16384,  32768,
        32769, 65536, 131072, 131073, 200000, 262143, 262144, 262208, norms::kMaxColumns};
    const std::int64_t rows[] = {1, 2, 16, 127, 2048, 65536, 4194304, std::int64_t{1} << 33};
    for (const RowUse use : kUses) {
        for (const Dtype dtype : {Dtype::Bf16, Dtype::F32}) {
            for (const int column : columns) {
                for (const std::int64_t row : rows) {
                    const Matrix shape = {row, column, dtype};
                    const Config config = choose(shape, machine, use);
                    validate(config, shape, use);
                    expect(config.blocks >= 1 && config.blocks % config.cluster_blocks == 0,
                           "whole clusters: " + describe(config));
                    const bool whole = std::int64_t{column} * bytes_of(dtype) % 16 == 0;
                    expect(config.aligned == whole || (whole && accumulates(use)),
                           "aligned: " + describe(config));
                    expect(config.teams() <= row + config.rows_per_block - 1,
                           "idle teams: " + describe(config));
                }
            }
        }
    }
}

void expect_described(const Matrix& shape, RowUse use, const std::string& wanted) {
    const Config config = choose(shape, kMachine, use);
    expect(describe(config) == wanted, std::to_string(shape.rows) + "x" +
                                           std::to_string(shape.columns) + ": " + describe(config) +
                                           ", not " + wanted);
}

// In chunks, by one block if rows are many; exponentials are held by a cluster instead.
void long_rows_take_chunks() {
    expect_described({4096, 262144, Dtype::Bf16}, RowUse::kReadOnce, "vs4 t512 r1 c1 k16 s0 b4096");
    expect_described({132, 151936, Dtype::Bf16}, RowUse::kReadOnce, "vs4 t480 r1 c2 k5 s0 b264");
    expect_described({6, 62720, Dtype::Bf16}, RowUse::kReadOnce, "v4 t256 r1 c8 k1 s0 b48");
    expect_described({3, 91638, Dtype::Bf16}, RowUse::kReadOnce, "w4 t384 r1 c8 k1 s0 b24");
    expect_described({4096, 262144, Dtype::Bf16}, RowUse::kExponentials,
                     "vh4 t256 r1 c8 k4 s0 b32768");
    expect_described({4096, 128256, Dtype::Bf16}, RowUse::kExponentials,
                     "vh4 t256 r1 c4 k4 s0 b16384");
    expect_described({4096, 20480, Dtype::Bf16}, RowUse::kExponentials,
                     "vh4 t160 r1 c1 k4 s0 b4096");
    expect_described({38, 32784, Dtype::Bf16}, RowUse::kExponentials, "v4 t160 r1 c8 k1 s0 b304");
    // A few waves of clusters hold their rows in registers.
    expect_described({168, 39816, Dtype::Bf16}, RowUse::kExponentials, "v4 t160 r1 c8 k1 s0 b1344");
    expect_described({1024, 32768, Dtype::Bf16}, RowUse::kExponentials,
                     "v4 t128 r1 c8 k1 s0 b8192");
    expect_described({4096, 50304, Dtype::Bf16}, RowUse::kExponentials,
                     "vh4 t224 r1 c2 k4 s0 b8192");
    expect_described({55, 194184, Dtype::Bf16}, RowUse::kExponentials, "vh4 t256 r1 c8 k3 s0 b440");
    // Blocks that never meet need no chunks.
    expect_described({4096, 262144, Dtype::Bf16}, RowUse::kRowAlone,
                     "vs4 t512 r1 c16 k1 s0 b65536");
    // Two rows stay in the registers of a cluster.
    expect_described({4096, 17936, Dtype::Bf16}, RowUse::kTwoRows, "v4 t160 r1 c4 k1 s0 b16384");
    expect_described({4096, 17936, Dtype::Bf16}, RowUse::kInPlace, "v4 t288 r1 c2 k1 s0 b8192");
    // Norms park what fits a block.
    expect_described({4096, 32768, Dtype::Bf16}, RowUse::kOneRow, "a8 t512 r1 c1 k1 s0 b4096");
    expect_described({4096, 32776, Dtype::Bf16}, RowUse::kOneRow, "vs4 t352 r1 c1 k3 s0 b4096");
    expect_described({64, 32768, Dtype::Bf16}, RowUse::kOneRow, "v4 t256 r1 c4 k1 s0 b256");
}

// Few rows take clusters of more blocks than every machine has, where this one has them.
void few_long_rows_take_large_clusters() {
    constexpr norms::Machine kLarge = {132, 7};
    const auto described = [](const Matrix& shape, const norms::Machine& machine, RowUse use) {
        return describe(choose(shape, machine, use));
    };
    const auto expect_blocks = [&](const Matrix& shape, RowUse use, const std::string& wanted) {
        const std::string found = described(shape, kLarge, use);
        expect(found == wanted, found + ", not " + wanted);
    };
    expect_blocks({1, 151936, Dtype::Bf16}, RowUse::kExponentials, "v4 t320 r1 c16 k1 s0 b16");
    expect_blocks({2, 174208, Dtype::Bf16}, RowUse::kOneRow, "v4 t352 r1 c16 k1 s0 b32");
    expect_blocks({1, 67010, Dtype::Bf16}, RowUse::kExponentials, "w2 t288 r1 c16 k1 s0 b16");
    expect_blocks({1, 262144, Dtype::Bf16}, RowUse::kReadOnce, "v4 t512 r1 c16 k1 s0 b16");
    // Not more of them than run at once, with two blocks on an SM; not blocks with next to nothing.
    expect_blocks({14, 100000, Dtype::Bf16}, RowUse::kExponentials, "v4 t224 r1 c16 k1 s0 b224");
    expect_blocks({15, 100000, Dtype::Bf16}, RowUse::kExponentials, "v4 t416 r1 c8 k1 s0 b120");
    expect_blocks({1, 56448, Dtype::Bf16}, RowUse::kExponentials, "v4 t224 r1 c8 k1 s0 b8");
    expect(described({1, 151936, Dtype::Bf16}, kMachine, RowUse::kReadOnce) ==
               "vs4 t320 r1 c8 k2 s0 b8",
           "a machine without them: " +
               described({1, 151936, Dtype::Bf16}, kMachine, RowUse::kReadOnce));
    expect(kLarge.clusters_at_once(16) == 7 && kMachine.clusters_at_once(16) == 0, "16 blocks");
    for (const RowUse use : kUses) {
        for (const Dtype dtype : {Dtype::Bf16, Dtype::F32}) {
            for (const int columns : {40000, 65602, 131072, 131073, 262142, norms::kMaxColumns}) {
                for (const std::int64_t rows : {1, 7, 14, 64}) {
                    const Config config = choose({rows, columns, dtype}, kLarge, use);
                    expect(!accumulates(use) || config.cluster_blocks <= 8, describe(config));
                }
            }
        }
    }
}

void streamed_rows_share_the_machine_evenly() {
    // Smaller blocks instead of a second wave of few.
    expect_described({396, 50432, Dtype::Bf16}, RowUse::kReadOnce, "vs4 t416 r1 c1 k4 s0 b396");
    expect_described({436, 50432, Dtype::Bf16}, RowUse::kReadOnce, "vs4 t320 r1 c1 k5 s0 b436");
    expect_described({792, 50432, Dtype::Bf16}, RowUse::kReadOnce, "vs4 t416 r1 c1 k4 s0 b792");
    // Three small blocks on some SMs instead of two large ones.
    expect_described({38, 38656, Dtype::Bf16}, RowUse::kReadOnce, "v4 t160 r1 c8 k1 s0 b304");
    expect_described({33, 38656, Dtype::Bf16}, RowUse::kReadOnce, "v4 t160 r1 c8 k1 s0 b264");
    expect_described({66, 38656, Dtype::Bf16}, RowUse::kReadOnce, "v4 t320 r1 c4 k1 s0 b264");
}

// Rows that are read twice take as many blocks as keep those at once in L2.
void streamed_rows_stay_in_cache() {
    expect_described({701, 89934, Dtype::Bf16}, RowUse::kExponentials,
                     "us2 t480 r1 c4 k3 s0 b2804");
    expect_described({4096, 50257, Dtype::Bf16}, RowUse::kExponentials,
                     "us2 t416 r1 c2 k4 s0 b8192");
    expect_described({4096, 32776, Dtype::Bf16}, RowUse::kOneRow, "vs4 t352 r1 c1 k3 s0 b4096");
    expect_described({4096, 131072, Dtype::Bf16}, RowUse::kOneRow, "vs4 t512 r1 c4 k2 s0 b16384");
}

void short_rows_share_a_block_if_they_are_many() {
    expect_described({65536, 512, Dtype::Bf16}, RowUse::kCentredRow, "v4 t16 r8 c1 k1 s0 b8192");
    expect_described({2000, 512, Dtype::Bf16}, RowUse::kCentredRow, "a2 t32 r1 c1 k1 s0 b2000");
    expect_described({2000, 512, Dtype::Bf16}, RowUse::kReadOnce, "v4 t16 r8 c1 k1 s0 b250");
    expect_described({65536, 1024, Dtype::Bf16}, RowUse::kCentredRow, "a4 t32 r1 c1 k1 s0 b65536");
}

void unaligned_rows_are_streamed_if_they_are_many() {
    expect_described({100, 4098, Dtype::Bf16}, RowUse::kOneRow, "w2 t288 r1 c1 k1 s0 b100");
    expect_described({100, 4099, Dtype::Bf16}, RowUse::kOneRow, "u2 t288 r1 c1 k1 s0 b100");
    expect_described({100, 4098, Dtype::Bf16}, RowUse::kExponentials, "w2 t288 r1 c1 k1 s0 b100");
    expect_described({99, 11668, Dtype::Bf16}, RowUse::kCentredRow, "d2 t384 r1 c2 k1 s0 b198");
    expect_described({3, 11667, Dtype::F32}, RowUse::kInPlace, "w2 t192 r1 c8 k1 s0 b24");
    expect_described({27, 1134, Dtype::Bf16}, RowUse::kInPlace, "w2 t96 r1 c1 k1 s0 b27");
    expect_described({400, 130, Dtype::Bf16}, RowUse::kOneRow, "w2 t32 r4 c1 k1 s0 b100");
    // Many rows too, if a block holds them.
    expect_described({49893, 1028, Dtype::Bf16}, RowUse::kOneRow, "d4 t64 r1 c1 k1 s0 b49893");
    expect_described({6692, 4556, Dtype::Bf16}, RowUse::kCentredRow, "d2 t288 r1 c1 k1 s0 b6692");
    expect_described({6692, 4556, Dtype::Bf16}, RowUse::kOneRow, "d4 t160 r1 c1 k1 s0 b6692");
    expect_described({65536, 258, Dtype::Bf16}, RowUse::kOneRow, "w4 t16 r8 c1 k1 s0 b8192");
    expect_described({65536, 132, Dtype::Bf16}, RowUse::kCentredRow, "d2 t16 r8 c1 k1 s0 b8192");
    expect_described({9000, 8196, Dtype::Bf16}, RowUse::kCentredRow, "us2 t192 r1 c1 k3 s0 b9000");
    // With a bias beside the row, not if the blocks leave much of an SM empty.
    expect_described({9000, 5122, Dtype::Bf16}, RowUse::kOneRow, "w4 t192 r1 c1 k1 s0 b9000");
    expect_described({9000, 5122, Dtype::Bf16}, RowUse::kCentredRow, "us2 t192 r1 c1 k2 s0 b9000");
    expect_described({9000, 5124, Dtype::Bf16}, RowUse::kCentredRow, "us2 t192 r1 c1 k2 s0 b9000");
    expect_described({9000, 6148, Dtype::Bf16}, RowUse::kCentredRow, "d2 t416 r1 c1 k1 s0 b9000");
    expect_described({18663, 8766, Dtype::Bf16}, RowUse::kOneRow, "w4 t288 r1 c1 k1 s0 b18663");
    expect_described({4096, 50257, Dtype::Bf16}, RowUse::kReadOnce, "us2 t256 r1 c1 k13 s0 b4096");
}

// How the row is cut, for one block per row and one row per block.
void expect_cut(const Matrix& shape, RowUse use, int vectors, int threads) {
    const Config config = choose(shape, kMachine, use);
    expect(
        config.vectors == vectors && config.threads_per_row == threads &&
            config.rows_per_block == 1 && config.cluster_blocks == 1 && config.chunks == 1 &&
            config.stages == 0 && config.alone,
        std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + ": " + describe(config));
}

void few_rows_get_many_threads() {
    for (const RowUse use : {RowUse::kOneRow, RowUse::kExponentials, RowUse::kReadOnce,
                             RowUse::kCentredRow, RowUse::kInPlace, RowUse::kTwoRows}) {
        expect_cut({1, 4096, Dtype::Bf16}, use, 2, 256);
    }
    for (const RowUse use : {RowUse::kCentredRow, RowUse::kInPlace, RowUse::kReadOnce}) {
        expect_cut({128, 7168, Dtype::Bf16}, use, 2, 448);
        expect_cut({16, 8192, Dtype::Bf16}, use, 2, 512);
        expect_cut({2048, 4096, Dtype::Bf16}, use, 2, 256);
    }
    expect_cut({128, 8192, Dtype::Bf16}, RowUse::kOneRow, 2, 512);
    expect_cut({2048, 8192, Dtype::Bf16}, RowUse::kOneRow, 4, 256);
    expect_cut({2048, 4096, Dtype::Bf16}, RowUse::kOneRow, 2, 256);
    expect_cut({2048, 4096, Dtype::Bf16}, RowUse::kExponentials, 4, 128);
}

void many_rows_get_many_loads() {
    for (const RowUse use : {RowUse::kCentredRow, RowUse::kReadOnce}) {
        expect_cut({65536, 4096, Dtype::Bf16}, use, 4, 128);
        expect_cut({65536, 6144, Dtype::Bf16}, use, 4, 192);
        expect_cut({65536, 7168, Dtype::Bf16}, use, 4, 224);
        expect_cut({65536, 8192, Dtype::Bf16}, use, 4, 256);
        expect_cut({65536, 12288, Dtype::Bf16}, use, 4, 384);
    }
    for (const RowUse use : {RowUse::kTwoRows, RowUse::kRowAlone}) {
        expect_cut({65536, 4096, Dtype::Bf16}, use, 2, 256);
        expect_cut({65536, 8192, Dtype::Bf16}, use, 2, 512);
    }
    expect_cut({65536, 12288, Dtype::Bf16}, RowUse::kTwoRows, 4, 384);
    expect_cut({65536, 12288, Dtype::Bf16}, RowUse::kRowAlone, 2, 768);
    // Two packets per thread if such blocks fill an SM exactly and rows are many.
    expect_cut({65536, 4096, Dtype::Bf16}, RowUse::kOneRow, 2, 256);
    expect_cut({16384, 6144, Dtype::Bf16}, RowUse::kOneRow, 2, 384);
    expect_cut({65536, 8192, Dtype::Bf16}, RowUse::kOneRow, 2, 512);
    expect_cut({65536, 7168, Dtype::Bf16}, RowUse::kOneRow, 4, 224);
    expect_cut({65536, 12288, Dtype::Bf16}, RowUse::kOneRow, 4, 384);
    expect_cut({4096, 8192, Dtype::Bf16}, RowUse::kOneRow, 4, 256);
    expect_cut({65536, 6144, Dtype::Bf16}, RowUse::kExponentials, 4, 192);
    expect_cut({65536, 8192, Dtype::Bf16}, RowUse::kExponentials, 2, 512);
    expect_cut({65536, 4096, Dtype::Bf16}, RowUse::kInPlace, 4, 128);
    expect_cut({39434, 1184, Dtype::Bf16}, RowUse::kInPlace, 2, 96);
    expect_cut({65536, 7168, Dtype::Bf16}, RowUse::kInPlace, 4, 224);
    expect_cut({4096, 6144, Dtype::Bf16}, RowUse::kInPlace, 2, 384);
    expect_cut({65536, 8192, Dtype::Bf16}, RowUse::kInPlace, 2, 512);
}

// RMSNorm with two packets per thread is always lean, with four only for few rows; fused add is
// lean with four.
void lean_kernels_where_they_are_faster() {
    const auto expect_lean = [](const Matrix& shape, RowUse use, int vectors, bool lean) {
        const Config config = choose(shape, kMachine, use);
        expect(config.vectors == vectors && config.lean == lean, describe(config));
    };
    expect_lean({65536, 8192, Dtype::Bf16}, RowUse::kOneRow, 2, true);
    expect_lean({2048, 8192, Dtype::Bf16}, RowUse::kOneRow, 4, true);
    expect_lean({16 * 132, 8192, Dtype::Bf16}, RowUse::kOneRow, 4, true);
    expect_lean({16 * 132 + 1, 8192, Dtype::Bf16}, RowUse::kOneRow, 4, false);
    expect_lean({65536, 7168, Dtype::Bf16}, RowUse::kOneRow, 4, false);
    expect_lean({65536, 4096, Dtype::Bf16}, RowUse::kInPlace, 4, true);
    expect_lean({65536, 8192, Dtype::Bf16}, RowUse::kInPlace, 2, false);
    // Teams of a warp, and of a cluster.
    expect_lean({65536, 256, Dtype::Bf16}, RowUse::kOneRow, 4, false);
    expect_lean({64, 262144, Dtype::Bf16}, RowUse::kOneRow, 4, false);
    for (const RowUse use : kUses) {
        if (use == RowUse::kOneRow || use == RowUse::kInPlace) continue;
        expect(!choose({64, 8192, Dtype::Bf16}, kMachine, use).lean, "lean without such a kernel");
    }
}

void sums_over_rows_leave_few_partials() {
    const Config config = choose({4194304, 4096, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(config.aligned && config.chunks == 1 && config.teams() <= 132 * 8, describe(config));
    const Config longest = choose({4096, 131072, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(longest.aligned && longest.cluster_blocks == 8, describe(longest));
    const Config too_long = choose({4096, 262144, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(!too_long.aligned && too_long.chunks == 1, describe(too_long));
}

void many_rows_are_staged_for_sums() {
    const Config sums = choose({65536, 4096, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(sums.stages == 2 && sums.threads_per_row == 256 && sums.blocks == 132 * 2,
           describe(sums));
    const Config wide = choose({65536, 6144, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    const Config both = choose({65536, 6144, Dtype::Bf16}, kMachine, RowUse::kAccumulateBoth);
    expect(wide.blocks == 132 * 2 && wide.vectors == 2, describe(wide));
    expect(both.blocks == 132 * 2 && both.vectors == 4, describe(both));
    const Config fewer = choose({1024, 6144, Dtype::Bf16}, kMachine, RowUse::kAccumulateBoth);
    expect(fewer.blocks == 132 && fewer.vectors == 2 && fewer.stages == 2, describe(fewer));
    // Each block leaves a row of sums: no more than keep an SM busy, with more of their rows ahead.
    const Config deeper = choose({2048, 4096, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(deeper.blocks == 132 && deeper.stages == 4, describe(deeper));
    const Config narrow = choose({2048, 2048, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(narrow.blocks == 132 * 2, describe(narrow));
    // A share of each row per block, where a block cannot hold rows; clusters that all run at once.
    const Config shared = choose({4096, 32768, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(shared.stages == 3 && shared.cluster_blocks == 4 && shared.blocks == 4 * 29,
           describe(shared));
    const Config halves = choose({4096, 15008, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(halves.stages == 3 && halves.cluster_blocks == 2 && halves.blocks == 132,
           describe(halves));
    // Where sums of the bias would lie in shared memory, two packets per thread: as much at work as
    // possible, with several blocks per SM.
    const Config eighths = choose({4096, 20480, Dtype::Bf16}, kMachine, RowUse::kAccumulateBoth);
    expect(eighths.vectors == 2 && eighths.cluster_blocks == 8 && eighths.blocks == 8 * 42,
           describe(eighths));
    const Config full = choose({4096, 32768, Dtype::Bf16}, kMachine, RowUse::kAccumulateBoth);
    expect(full.vectors == 2 && full.cluster_blocks == 4 && full.blocks == 4 * 29, describe(full));
    const Config quarters = choose({4096, 65536, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(quarters.stages == 2 && quarters.cluster_blocks == 4 && quarters.blocks == 4 * 29,
           describe(quarters));
    const Config widest = choose({65536, 8192, Dtype::Bf16}, kMachine, RowUse::kAccumulate);
    expect(widest.blocks == 132 && widest.stages == 3, describe(widest));
    for (const int columns : {10240, 13568}) {
        const Matrix shape = {4096, columns, Dtype::Bf16};
        for (const RowUse use : {RowUse::kAccumulate, RowUse::kAccumulateBoth}) {
            const Config longer = choose(shape, kMachine, use);
            expect(longer.stages >= 2 && longer.vectors == 4, describe(longer));
        }
    }
    for (const RowUse use : kUses) {
        expect(choose({64, 4096, Dtype::Bf16}, kMachine, use).stages == 0, "few rows staged");
        const bool staged = choose({65536, 4095, Dtype::Bf16}, kMachine, use).stages > 0;
        expect(staged == norms::accumulates(use), "rows at any address, staged or not");
    }
}

void many_short_rows_are_staged_for_sums() {
    const auto staged = [](std::int64_t rows, int columns) {
        return choose({rows, columns, Dtype::Bf16}, kMachine, RowUse::kAccumulate).stages > 0;
    };
    expect(staged(65536, 1024) && staged(65536, 768), "two packets per lane of two warps");
    expect(!staged(65536, 512), "one warp");
    expect(!staged(8192, 1024), "too few for twice the sums");
}

void rows_at_any_address_keep_their_sums() {
    const auto keeps = [](std::int64_t rows, int columns, Dtype dtype) {
        const Config config = choose({rows, columns, dtype}, kMachine, RowUse::kAccumulateBoth);
        return config.keeps_columns();
    };
    expect(keeps(6344, 1142, Dtype::Bf16) && keeps(65536, 8191, Dtype::Bf16), "more than a warp");
    expect(keeps(40000, 333, Dtype::F32), "fp32");
    expect(!keeps(40000, 101, Dtype::Bf16), "less than a packet per lane");
    expect(!keeps(4096, 16381, Dtype::Bf16), "more than shared memory holds");
    expect(!keeps(300, 5001, Dtype::Bf16), "too few rows to prefetch");
    const Config in_place = choose({6344, 1142, Dtype::Bf16}, kMachine, RowUse::kAccumulate, true);
    expect(!in_place.keeps_columns(), "packets that rows share, in place");
    const Matrix shape = {6344, 1142, Dtype::Bf16};
    const Config config = choose(shape, kMachine, RowUse::kAccumulate);
    expect(norms::shared_bytes(config, shape, RowUse::kAccumulate) == 2 * 2 * 144 * 16 + 1144 * 4,
           "a slot has one packet more, sums are whole packets");
}

void refuses(const Matrix& shape, const char* words) {
    testing::expect_refused([&] { choose(shape, kMachine, RowUse::kOneRow); }, words);
}

void refuses_configs_that_do_not_fit() {
    const Matrix shape = {64, 4096, Dtype::Bf16};
    const Config good = choose(shape, kMachine, RowUse::kOneRow);
    const auto refused = [&](const char* words, auto spoil) {
        Config bad = good;
        spoil(bad);
        testing::expect_refused([&] { validate(bad, shape, RowUse::kOneRow); }, words);
    };
    refused("vectors is 3", [](Config& config) { config.vectors = 3; });
    refused("threads_per_row is 33", [](Config& config) { config.threads_per_row = 33; });
    refused("do not cover the row", [](Config& config) { config.threads_per_row = 32; });
    refused("several", [](Config& config) { config.rows_per_block = 2; });
    refused("several", [](Config& config) { config.cluster_blocks = 16; });
    refused("several", [](Config& config) { config.blocks = 0; });
    refused("only a lean kernel", [](Config& config) { config.lean = false; });
}

void few_rows_take_one_launch() {
    using norms::are_few_rows;
    expect(are_few_rows({128, 8192, Dtype::Bf16}), "a decode step");
    expect(are_few_rows({1, 16384, Dtype::Bf16}), "the widest row of one block");
    expect(!are_few_rows({1, 16392, Dtype::Bf16}), "wider");
    expect(are_few_rows({1, 1001, Dtype::Bf16}), "rows that are not whole packets");
    expect(!are_few_rows({1, 16383, Dtype::Bf16}), "one that touches a packet too many");
    expect(are_few_rows({512, 256, Dtype::Bf16}), "the most rows");
    expect(!are_few_rows({513, 256, Dtype::Bf16}), "more");
    const Config config = choose({6, 1032, Dtype::Bf16}, kMachine, RowUse::kFewRows);
    expect(norms::describe(config) == "a2 t256 r1 c1 k1 s0 b23", norms::describe(config));
    const Config wide = choose({3, 12288, Dtype::Bf16}, kMachine, RowUse::kFewRows);
    expect(norms::describe(wide) == "a4 t384 r1 c1 k1 s0 b195", norms::describe(wide));
    const Config any = choose({111, 8308, Dtype::Bf16}, kMachine, RowUse::kFewRows);
    expect(norms::describe(any) == "u4 t288 r1 c1 k1 s0 b241", norms::describe(any));
}

}  // namespace

int main() {
    few_rows_take_one_launch();
    for (const int count : {1, 5, 7, 16, 132, 142, 148, 152, 160}) {
        every_shape_is_covered({count});
        every_shape_is_covered({count, count / 18});
    }
    long_rows_take_chunks();
    few_long_rows_take_large_clusters();
    streamed_rows_share_the_machine_evenly();
    streamed_rows_stay_in_cache();
    short_rows_share_a_block_if_they_are_many();
    unaligned_rows_are_streamed_if_they_are_many();
    few_rows_get_many_threads();
    many_rows_get_many_loads();
    lean_kernels_where_they_are_faster();
    sums_over_rows_leave_few_partials();
    many_rows_are_staged_for_sums();
    many_short_rows_are_staged_for_sums();
    rows_at_any_address_keep_their_sums();
    refuses({0, 8, Dtype::Bf16}, "rows is 0");
    refuses({8, 0, Dtype::Bf16}, "columns is 0");
    refuses({8, norms::kMaxColumns + 1, Dtype::Bf16}, "columns is 393217; 1 to 393216");
    refuses({8, 8, Dtype::E4m3}, "no fp8_e4m3");
    refuses_configs_that_do_not_fit();
    return 0;
}
