// Facts of the library's own code (hopper/flash_api.cpp, heuristics.h, tile_size.h), worked out by
// hand; its packing is worth it where tiles of one head would be filled to less than 90 % of what
// tiles of a group are.
#include "Kernels/baselines/flash_attention_3/choose.h"

#include <cstdio>

namespace {

using flash_attention_3::Batch;
using flash_attention_3::choose;
using flash_attention_3::Kernel;
using flash_attention_3::name_of;

struct Fact {
    Batch batch;
    Kernel kernel;
    const char* name;
};

// Batch: same lengths, causal, longest_q, heads, kv_heads, head dimensions. Kernel: head
// dimensions, causal, varlen, packs heads, cluster.
const Fact kFacts[] = {
    {{true, true, 4096, 32, 8, 128, 128},
     {128, 128, true, false, false, 1},
     "FlashAttnFwdSm90 causal dense 128x128"},
    // 65 of 128 rows, or 195 of 256.
    {{true, true, 65, 3, 1, 128, 128},
     {128, 128, true, false, true, 1},
     "FlashAttnFwdSm90 causal dense packgqa 128x128"},
    // 1000 of 1024, or 7000 of 7040.
    {{true, true, 1000, 28, 4, 128, 128},
     {128, 128, true, false, false, 1},
     "FlashAttnFwdSm90 causal dense 128x128"},
    {{true, true, 65, 3, 3, 128, 128},
     {128, 128, true, false, false, 1},
     "FlashAttnFwdSm90 causal dense 128x128"},
    {{false, true, 4096, 32, 8, 128, 128},
     {128, 128, true, true, true, 1},
     "FlashAttnFwdSm90 causal varlen packgqa 128x128"},
    {{false, true, 4096, 32, 32, 128, 128},
     {128, 128, true, true, false, 1},
     "FlashAttnFwdSm90 causal varlen 128x128"},
    // An even number of tiles runs in pairs, an odd one does not.
    {{true, false, 4096, 32, 8, 128, 128},
     {128, 128, false, false, false, 2},
     "FlashAttnFwdSm90 full dense cluster2 128x176"},
    {{true, false, 4000, 32, 32, 128, 128},
     {128, 128, false, false, false, 2},
     "FlashAttnFwdSm90 full dense cluster2 128x176"},
    {{true, false, 384, 32, 32, 128, 128},
     {128, 128, false, false, false, 1},
     "FlashAttnFwdSm90 full dense 128x176"},
    {{true, false, 65, 3, 1, 128, 128},
     {128, 128, false, false, true, 2},
     "FlashAttnFwdSm90 full dense packgqa cluster2 128x176"},
    {{false, false, 700, 32, 8, 128, 128},
     {128, 128, false, true, true, 1},
     "FlashAttnFwdSm90 full varlen packgqa 128x176"},
    // Tiles of 192 rows for heads of 64, which never run in pairs: 65 of 192, or 520 of 576.
    {{true, true, 65, 64, 8, 64, 64},
     {64, 64, true, false, true, 1},
     "FlashAttnFwdSm90 64 causal dense packgqa 192x128"},
    {{true, false, 384, 64, 8, 64, 64},
     {64, 64, false, false, false, 1},
     "FlashAttnFwdSm90 64 full dense 192x192"},
    {{true, true, 4096, 128, 128, 192, 128},
     {192, 128, true, false, false, 1},
     "FlashAttnFwdSm90 192/128 causal dense 128x128"},
    {{false, true, 4096, 32, 16, 256, 256},
     {256, 256, true, true, true, 1},
     "FlashAttnFwdSm90 256 causal varlen packgqa 128x80"},
    // One query needs no mask.
    {{false, true, 1, 32, 8, 128, 128},
     {128, 128, false, true, true, 1},
     "FlashAttnFwdSm90 full varlen packgqa 128x176"},
};

}  // namespace

int main() {
    int wrong = 0;
    for (const Fact& fact : kFacts) {
        const Kernel kernel = choose(fact.batch);
        if (kernel == fact.kernel && name_of(kernel) == fact.name) continue;
        std::printf("%d queries, %d/%d heads: %s; expected %s\n", fact.batch.longest_q,
                    fact.batch.heads, fact.batch.kv_heads, name_of(kernel).c_str(), fact.name);
        ++wrong;
    }
    return wrong == 0 ? 0 : 1;
}
