// Facts of the library's own host code (csrc/api/dense_decode.h and what it calls), worked out by
// hand for a device with 132 multiprocessors.
#include "Kernels/baselines/flash_mla/parameters.h"

#include <string>

#include "Kernels/device/testing.h"

namespace {

using flash_mla::Launch;
using flash_mla::Memory;
using flash_mla::Step;
using testing::expect;
using testing::expect_refused;

constexpr int kMultiprocessors = 132;

struct Fact {
    Step step;
    int parts;
    int most_splits;
    unsigned tiles;
    unsigned combine_blocks[2];
};

// Step: batch, q_len, heads, pages, scale.
const Fact kFacts[] = {
    // A tile is 64 rows, most of them empty with 16 heads.
    {{1, 1, 16, 1, 0.1F}, 132, 160, 1, {1, 2}},
    {{7, 1, 64, 9, 0.1F}, 132, 160, 1, {7, 8}},
    {{128, 1, 128, 16384, 0.1F}, 66, 96, 2, {128, 16}},
    {{5, 2, 128, 100, 0.1F}, 33, 64, 4, {10, 16}},
    {{5, 3, 5, 100, 0.1F}, 132, 160, 1, {15, 1}},
    // More tiles than multiprocessors: still one part.
    {{1, 16, 1024, 100, 0.1F}, 1, 32, 256, {16, 128}},
};

void launches_are_the_library_s() {
    for (const Fact& fact : kFacts) {
        const Step& step = fact.step;
        const std::string what =
            std::to_string(step.q_len) + " tokens of " + std::to_string(step.heads) + " heads";
        const int parts = flash_mla::parts(step, kMultiprocessors);
        expect(parts == fact.parts, "parts of " + what);
        expect(flash_mla::partials(step, parts) == step.batch + parts, "partials of " + what);
        expect(flash_mla::most_splits(parts) == fact.most_splits, "splits of " + what);
        const Launch decode = flash_mla::decode_launch(step, parts);
        expect(decode.grid.x == fact.tiles && decode.grid.y == 1 &&
                   decode.grid.z == static_cast<unsigned>(parts) && decode.threads == 256 &&
                   decode.shared_bytes == 230816 && decode.overlaps_previous,
               "decoding " + what);
        const Launch combine = flash_mla::combine_launch(step);
        expect(combine.grid.x == fact.combine_blocks[0] && combine.grid.y == 1 &&
                   combine.grid.z == fact.combine_blocks[1] && combine.threads == 256 &&
                   combine.shared_bytes == 0 && combine.overlaps_previous,
               "combining " + what);
        const Launch schedule = flash_mla::schedule_launch(step);
        expect(schedule.grid.x == 1 && schedule.threads == 32 && !schedule.overlaps_previous &&
                   schedule.shared_bytes == 4 * (3 * static_cast<unsigned>(step.batch) + 1),
               "scheduling " + what);
    }
}

void the_mask_is_for_several_tokens() {
    const Memory memory = {};
    const auto one = flash_mla::decode_parameters({2, 1, 16, 4, 0.5F}, memory, 132);
    const auto two = flash_mla::decode_parameters({2, 2, 16, 4, 0.5F}, memory, 132);
    expect(!one.causal && two.causal, "a causal mask from two new tokens on");
    expect(one.rows == 16 && two.rows == 32, "heads and tokens packed into rows");
    // log2(e) / 2.
    expect(one.scale_log2 == 0.72134752F && one.scale == 0.5F, "the scale in base 2");
}

void maps_cover_the_tensors() {
    const Memory memory = {};
    const Step step = {3, 2, 40, 7, 0.1F};
    const auto q = flash_mla::q_boxes(step, memory);
    expect(q.sizes[0] == 576 && q.sizes[1] == 80 && q.sizes[2] == 1 && q.sizes[3] == 3,
           "sizes of queries");
    expect(q.strides[0] == 1152 && q.strides[2] == 80 * 1152, "strides of queries");
    const auto cache = flash_mla::cache_boxes(step, memory);
    expect(cache.sizes[1] == 64 && cache.sizes[3] == 7 && cache.strides[2] == 64 * 1152, "pages");
    const auto out = flash_mla::out_boxes(step, memory);
    expect(out.sizes[0] == 512 && out.sizes[1] == 80 && out.strides[0] == 1024 &&
               out.strides[1] == 80 * 1024 && out.strides[2] == 80 * 1024,
           "outputs");
    for (const auto& boxes : {q, cache, out}) {
        expect(boxes.box[0] == 64 && boxes.box[1] == 64 && boxes.box[2] == 1 && boxes.box[3] == 1,
               "boxes of 64 rows and 128 bytes");
    }
}

void too_much_is_refused() {
    // 2^31 - 1 elements are 4194303 rows of 512.
    expect(flash_mla::fits({4227, 8, 124, 1, 0.1F}, 1), "4228 * 992 rows");
    expect(!flash_mla::fits({4228, 8, 124, 1, 0.1F}, 1), "4229 * 992 rows");
    expect_refused([] { flash_mla::most_splits(257); }, "257 parts");
}

}  // namespace

int main() {
    launches_are_the_library_s();
    the_mask_is_for_several_tokens();
    maps_cover_the_tensors();
    too_much_is_refused();
}
