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

// Batch: same lengths, causal, longest_q, heads, kv_heads. Kernel: causal, varlen, packs heads,
// cluster.
const Fact kFacts[] = {
    {{true, true, 4096, 32, 8}, {true, false, false, 1}, "FlashAttnFwdSm90 causal dense 128x128"},
    // 65 of 128 rows, or 195 of 256.
    {{true, true, 65, 3, 1},
     {true, false, true, 1},
     "FlashAttnFwdSm90 causal dense packgqa 128x128"},
    // 1000 of 1024, or 7000 of 7040.
    {{true, true, 1000, 28, 4}, {true, false, false, 1}, "FlashAttnFwdSm90 causal dense 128x128"},
    {{true, true, 65, 3, 3}, {true, false, false, 1}, "FlashAttnFwdSm90 causal dense 128x128"},
    {{false, true, 4096, 32, 8},
     {true, true, true, 1},
     "FlashAttnFwdSm90 causal varlen packgqa 128x128"},
    {{false, true, 4096, 32, 32}, {true, true, false, 1}, "FlashAttnFwdSm90 causal varlen 128x128"},
    // An even number of tiles runs in pairs, an odd one does not.
    {{true, false, 4096, 32, 8},
     {false, false, false, 2},
     "FlashAttnFwdSm90 full dense cluster2 128x176"},
    {{true, false, 4000, 32, 32},
     {false, false, false, 2},
     "FlashAttnFwdSm90 full dense cluster2 128x176"},
    {{true, false, 384, 32, 32}, {false, false, false, 1}, "FlashAttnFwdSm90 full dense 128x176"},
    {{true, false, 65, 3, 1},
     {false, false, true, 2},
     "FlashAttnFwdSm90 full dense packgqa cluster2 128x176"},
    {{false, false, 700, 32, 8},
     {false, true, true, 1},
     "FlashAttnFwdSm90 full varlen packgqa 128x176"},
    // One query needs no mask.
    {{false, true, 1, 32, 8},
     {false, true, true, 1},
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
