#include <string>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"
#include "Kernels/norms/row_config.h"

namespace norms {

using device::power_of_two_from;

void validate(const Config& config, const Matrix& shape, RowUse use) {
    const auto require = [](bool holds, const std::string& what) {
        device::require(holds, "config: " + what);
    };
    const int vectors = config.vectors;
    const int threads = config.threads_per_row;
    require(vectors == 1 || vectors == 2 || vectors == 4 || vectors == 8,
            "vectors is " + std::to_string(vectors) + "; use 1, 2, 4 or 8");
    require(!config.aligned || is_aligned(shape), "aligned, but rows are not whole packets");
    require(vectors == existing_vectors(config, use) || config.stages > 0,
            "no kernel with " + std::to_string(vectors) + " vectors");
    require(!config.alone ||
                (config.aligned && config.rows_per_block == 1 && config.stages == 0 &&
                 config.cluster_blocks == 1 && config.chunks == 1 &&
                 (config.blocks == shape.rows || use == RowUse::kFewRows) && vectors >= 2 &&
                 vectors <= most_alone(use) && threads >= kWarp && !accumulates(use)),
            "alone, but blocks share rows or have several");
    const Lean when = config.alone ? lean(use, vectors) : Lean::kNever;
    require(when == Lean::kFewRows || config.lean == (when == Lean::kAlways),
            config.lean ? "no lean kernel" : "only a lean kernel");
    require(threads >= 1 && (threads % kWarp == 0 ||
                             (threads < kWarp && power_of_two_from(threads) == threads)),
            "threads_per_row is " + std::to_string(threads));
    require(config.rows_per_block >= 1 && (config.rows_per_block == 1 || threads <= kWarp),
            "rows_per_block above 1 needs rows within a warp");
    const int block = threads * config.rows_per_block;
    const int most_threads = config.aligned ? max_threads(vectors, use) : kMaxUnalignedThreads;
    require(block <= most_threads, "block of " + std::to_string(block) + " threads");
    require(block % kWarp == 0,
            "block of " + std::to_string(block) + " threads is not whole warps");
    require(config.cluster_blocks >= 1 && config.cluster_blocks <= most_blocks_per_row(use) &&
                power_of_two_from(config.cluster_blocks) == config.cluster_blocks,
            "cluster_blocks is " + std::to_string(config.cluster_blocks));
    require(config.cluster_blocks == 1 || threads >= kWarp, "a cluster needs whole warps");
    require(config.chunks == 1 || (config.chunks > 1 && (config.streamed || config.held ||
                                                         (!config.aligned && accumulates(use)))),
            "chunks is " + std::to_string(config.chunks));
    require(!config.streamed || (config.rows_per_block == 1 && threads >= kWarp && !config.alone &&
                                 !config.held && !accumulates(use)),
            "streamed, but not by blocks of its own");
    require(config.stages >= 0 && config.stages <= kMostStages,
            "stages is " + std::to_string(config.stages));
    if (config.stages > 0) {
        require(may_stage(use) && may_stage(vectors), "no kernel with stages");
        require(config.rows_per_block == 1 && (config.aligned || config.cluster_blocks == 1),
                "stages need one row per block");
        require(config.chunks == 1, "stages need a single chunk");
        const int bytes = shared_bytes(config, shape, use);
        require(bytes <= kMostStagedBytes, std::to_string(bytes) + " bytes of shared memory");
    }
    if (config.held) {
        require(may_hold(use) && config.aligned && config.rows_per_block == 1 && threads >= kWarp &&
                    config.stages == 0 && config.chunks <= kMostHeldChunks &&
                    config.blocks == shape.rows * config.cluster_blocks,
                "held, but not one aligned row per cluster");
        const int bytes = shared_bytes(config, shape, use);
        require(bytes <= kMostStagedBytes, std::to_string(bytes) + " bytes of shared memory");
    }
    require(config.blocks >= 1 && config.blocks <= kMaxBlocks &&
                config.blocks % config.cluster_blocks == 0,
            "blocks is " + std::to_string(config.blocks));
    require(
        std::int64_t{vectors} * threads * config.cluster_blocks * config.chunks >=
            (config.stages > 0 || config.word_bytes > 0 ? own_packets(shape) : packets_of(shape)),
        "threads do not cover the row");
    const int word = config.word_bytes;
    require(word == 0 || word == 4 || word == 8, "words of " + std::to_string(word) + " bytes");
    require(word == 0 || (may_take_words(use) && !config.aligned && is_words(shape, word) &&
                          vectors >= 2 && vectors <= most_words(use) && config.chunks == 1),
            "words, but rows are not whole words in a single chunk");
}

std::string describe(const Config& config) {
    return (config.lean              ? "l"
            : config.alone           ? "a"
            : config.aligned         ? "v"
            : config.word_bytes == 8 ? "d"
            : config.word_bytes == 4 ? "w"
                                     : "u") +
           std::string(config.held       ? "h"
                       : config.streamed ? "s"
                                         : "") +
           std::to_string(config.vectors) + " t" + std::to_string(config.threads_per_row) + " r" +
           std::to_string(config.rows_per_block) + " c" + std::to_string(config.cluster_blocks) +
           " k" + std::to_string(config.chunks) + " s" + std::to_string(config.stages) + " b" +
           std::to_string(config.blocks);
}

}  // namespace norms
