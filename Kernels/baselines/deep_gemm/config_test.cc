// The tiles are the library's own choices. It was queried (0.2.5 with PyTorch 2.14.1,
// DG_PRINT_CONFIGS=1 and a stand-in for the device) for all grouped GEMMs and the FP8 dense ones,
// for 132 multiprocessors of sm_90a, 148 of sm_100a, and 152 for dense ones. Dense bf16 it leaves
// to cuBLASLt, so that part of the table comes from another program that follows its published host
// code.
#include "Kernels/baselines/deep_gemm/config.h"

#include <cstdio>
#include <cstring>
#include <iterator>
#include <stdexcept>

namespace {

using deep_gemm_baseline::choose;
using deep_gemm_baseline::Config;
using deep_gemm_baseline::kB200;
using deep_gemm_baseline::kGb200;
using deep_gemm_baseline::Kind;
using deep_gemm_baseline::kSm90;
using deep_gemm_baseline::Operands;
using deep_gemm_baseline::Problem;
using deep_gemm_baseline::Target;
using deep_gemm_baseline::target_of;

constexpr Operands kBf16 = Operands::kBf16, kFp8 = Operands::kFp8, kMxfp8 = Operands::kMxfp8,
                   kMxfp4 = Operands::kMxfp4;

struct Fact {
    Problem problem;
    int block_m;
    int block_n;
    int stages;
    int cluster_m;
    int cluster_n;
    int shared_bytes;
};

// clang-format off
constexpr Fact kFacts[] = {
    {{Kind::kDense, kFp8, 64, 2112, 7168, 1, 0}, 64, 16, 16, 1, 1, 170464},
    {{Kind::kDense, kFp8, 64, 24576, 1536, 1, 0}, 64, 96, 10, 2, 1, 220000},
    {{Kind::kDense, kFp8, 128, 32768, 512, 1, 0}, 128, 128, 5, 1, 2, 199440},
    {{Kind::kDense, kFp8, 128, 7168, 16384, 1, 0}, 64, 112, 9, 1, 1, 220672},
    {{Kind::kDense, kFp8, 4096, 4096, 7168, 1, 0}, 256, 128, 3, 1, 2, 216544},
    {{Kind::kDense, kFp8, 4096, 2112, 7168, 1, 0}, 128, 192, 4, 2, 1, 215744},
    {{Kind::kDense, kFp8, 4096, 24576, 1536, 1, 0}, 256, 128, 3, 1, 2, 216368},
    {{Kind::kDense, kFp8, 16, 6144, 4096, 1, 0}, 16, 48, 16, 1, 1, 135680},
    {{Kind::kDense, kFp8, 16, 57344, 8192, 1, 0}, 16, 160, 10, 2, 1, 232448},
    {{Kind::kDense, kFp8, 512, 10240, 8192, 1, 0}, 128, 160, 5, 2, 1, 228608},
    {{Kind::kDense, kFp8, 512, 28672, 4096, 1, 0}, 256, 112, 3, 1, 2, 202240},
    {{Kind::kDense, kFp8, 512, 4096, 4096, 1, 0}, 128, 128, 5, 1, 1, 199552},
    {{Kind::kDense, kFp8, 1024, 1024, 1024, 1, 0}, 64, 128, 8, 1, 1, 215328},
    {{Kind::kDense, kFp8, 2048, 2048, 2048, 1, 0}, 256, 128, 3, 1, 1, 216384},
    {{Kind::kDense, kFp8, 8192, 8192, 8192, 1, 0}, 256, 128, 3, 1, 2, 216576},
    {{Kind::kContiguous, kFp8, 128, 4096, 7168, 1, 0}, 128, 32, 10, 1, 1, 218592},
    {{Kind::kContiguous, kFp8, 128, 7168, 2048, 1, 0}, 128, 64, 8, 1, 1, 217408},
    {{Kind::kContiguous, kFp8, 1024, 4096, 7168, 8, 0}, 128, 128, 5, 1, 2, 199648},
    {{Kind::kContiguous, kFp8, 1024, 7168, 2048, 8, 0}, 128, 160, 5, 2, 1, 228224},
    {{Kind::kContiguous, kFp8, 4096, 7168, 2048, 32, 0}, 128, 192, 4, 2, 1, 215424},
    {{Kind::kContiguous, kFp8, 32768, 4096, 7168, 4, 0}, 128, 192, 4, 2, 1, 215744},
    {{Kind::kContiguous, kFp8, 32768, 7168, 2048, 8, 0}, 128, 192, 4, 2, 1, 215424},
    {{Kind::kMasked, kFp8, 1024, 4096, 7168, 8, 32}, 64, 128, 8, 2, 1, 215520},
    {{Kind::kMasked, kFp8, 1024, 4096, 7168, 8, 256}, 128, 192, 4, 2, 1, 215744},
    {{Kind::kMasked, kFp8, 1024, 7168, 2048, 32, 32}, 64, 192, 6, 2, 1, 223104},
    {{Kind::kMasked, kFp8, 1024, 4096, 7168, 64, 32}, 64, 192, 6, 2, 1, 223424},
    {{Kind::kDense, kBf16, 64, 2112, 7168, 1, 0}, 64, 16, 16, 1, 1, 166144},
    {{Kind::kDense, kBf16, 64, 24576, 1536, 1, 0}, 64, 96, 10, 2, 1, 217344},
    {{Kind::kDense, kBf16, 128, 32768, 512, 1, 0}, 128, 256, 3, 1, 1, 213248},
    {{Kind::kDense, kBf16, 128, 7168, 16384, 1, 0}, 64, 112, 9, 1, 1, 217344},
    {{Kind::kDense, kBf16, 4096, 4096, 7168, 1, 0}, 256, 128, 3, 1, 2, 213248},
    {{Kind::kDense, kBf16, 4096, 2112, 7168, 1, 0}, 128, 176, 4, 2, 1, 200960},
    {{Kind::kDense, kBf16, 4096, 24576, 1536, 1, 0}, 128, 240, 3, 2, 1, 203008},
    {{Kind::kDense, kBf16, 16, 6144, 4096, 1, 0}, 16, 48, 16, 1, 1, 133376},
    {{Kind::kDense, kBf16, 16, 57344, 8192, 1, 0}, 16, 224, 7, 2, 1, 222464},
    {{Kind::kDense, kBf16, 512, 10240, 8192, 1, 0}, 128, 160, 5, 2, 1, 225536},
    {{Kind::kDense, kBf16, 512, 28672, 4096, 1, 0}, 128, 224, 3, 2, 1, 192768},
    {{Kind::kDense, kBf16, 512, 4096, 4096, 1, 0}, 128, 128, 6, 1, 1, 229632},
    {{Kind::kDense, kBf16, 1024, 1024, 1024, 1, 0}, 64, 128, 8, 1, 1, 213248},
    {{Kind::kDense, kBf16, 2048, 2048, 2048, 1, 0}, 128, 256, 3, 1, 1, 213248},
    {{Kind::kDense, kBf16, 8192, 8192, 8192, 1, 0}, 256, 128, 3, 1, 2, 213248},
    {{Kind::kContiguous, kBf16, 128, 4096, 7168, 1, 0}, 128, 32, 10, 1, 1, 213248},
    {{Kind::kContiguous, kBf16, 128, 7168, 2048, 1, 0}, 128, 64, 8, 1, 1, 213248},
    {{Kind::kContiguous, kBf16, 1024, 4096, 7168, 8, 0}, 128, 256, 3, 1, 1, 213248},
    {{Kind::kContiguous, kBf16, 1024, 7168, 2048, 8, 0}, 128, 224, 3, 2, 1, 192768},
    {{Kind::kContiguous, kBf16, 4096, 7168, 2048, 32, 0}, 128, 256, 3, 2, 1, 213248},
    {{Kind::kContiguous, kBf16, 32768, 4096, 7168, 4, 0}, 128, 256, 3, 2, 1, 213248},
    {{Kind::kContiguous, kBf16, 32768, 7168, 2048, 8, 0}, 128, 256, 3, 2, 1, 213248},
    {{Kind::kMasked, kBf16, 1024, 4096, 7168, 8, 32}, 64, 128, 8, 2, 1, 213248},
    {{Kind::kMasked, kBf16, 1024, 4096, 7168, 8, 256}, 128, 256, 3, 2, 1, 213248},
    {{Kind::kMasked, kBf16, 1024, 7168, 2048, 32, 32}, 64, 256, 4, 2, 1, 196864},
    {{Kind::kMasked, kBf16, 1024, 4096, 7168, 64, 32}, 64, 256, 4, 2, 1, 196864},
};

constexpr Fact kSm100Facts[] = {
    {{Kind::kContiguous, kFp8, 128, 4096, 7168, 1, 0}, 128, 128, 8, 1, 2, 213820},
    {{Kind::kContiguous, kFp8, 1024, 7168, 2048, 8, 0}, 128, 128, 8, 1, 2, 213820},
    {{Kind::kContiguous, kFp8, 4096, 7168, 2048, 32, 0}, 128, 128, 8, 1, 2, 213820},
    {{Kind::kContiguous, kFp8, 32768, 4096, 7168, 4, 0}, 128, 128, 8, 1, 2, 213820},
    {{Kind::kMasked, kFp8, 1024, 4096, 7168, 8, 32}, 128, 128, 8, 1, 2, 213820},
    {{Kind::kMasked, kFp8, 1024, 4096, 7168, 8, 256}, 128, 128, 8, 1, 2, 213820},
    {{Kind::kMasked, kFp8, 1024, 7168, 2048, 32, 32}, 128, 128, 8, 1, 2, 213820},
    {{Kind::kContiguous, kBf16, 128, 4096, 7168, 1, 0}, 128, 128, 9, 1, 2, 230204},
    {{Kind::kContiguous, kBf16, 4096, 7168, 2048, 32, 0}, 128, 128, 9, 1, 2, 230204},
    {{Kind::kContiguous, kBf16, 32768, 4096, 7168, 4, 0}, 128, 128, 9, 1, 2, 230204},
    {{Kind::kMasked, kBf16, 1024, 4096, 7168, 64, 32}, 128, 128, 9, 1, 2, 230204},
    {{Kind::kDense, kFp8, 1, 128, 128, 1, 0}, 32, 16, 32, 1, 1, 232252},
    {{Kind::kDense, kFp8, 16, 4096, 4096, 1, 0}, 16, 128, 12, 1, 2, 230204},
    {{Kind::kDense, kFp8, 64, 2112, 7168, 1, 0}, 64, 16, 20, 1, 1, 230204},
    {{Kind::kDense, kFp8, 64, 7168, 2048, 1, 0}, 32, 128, 11, 1, 2, 223036},
    {{Kind::kDense, kFp8, 64, 24576, 1536, 1, 0}, 64, 192, 6, 1, 1, 223036},
    {{Kind::kDense, kFp8, 64, 32768, 512, 1, 0}, 64, 224, 5, 1, 1, 201020},
    {{Kind::kDense, kFp8, 64, 128256, 4096, 1, 0}, 64, 128, 10, 1, 2, 224060},
    {{Kind::kDense, kFp8, 65, 272, 384, 1, 0}, 128, 16, 11, 1, 1, 223036},
    {{Kind::kDense, kFp8, 128, 2112, 7168, 1, 0}, 16, 128, 11, 1, 1, 223036},
    {{Kind::kDense, kFp8, 128, 24576, 1536, 1, 0}, 128, 192, 4, 1, 1, 203580},
    {{Kind::kDense, kFp8, 128, 32768, 512, 1, 0}, 128, 224, 4, 1, 1, 203580},
    {{Kind::kDense, kFp8, 130, 520, 2048, 1, 0}, 128, 16, 12, 2, 1, 230204},
    {{Kind::kDense, kFp8, 512, 4096, 4096, 1, 0}, 128, 128, 7, 2, 1, 212796},
    {{Kind::kDense, kFp8, 512, 6144, 4096, 1, 0}, 176, 128, 7, 1, 2, 213308},
    {{Kind::kDense, kFp8, 512, 8192, 28672, 1, 0}, 128, 224, 6, 2, 1, 210748},
    {{Kind::kDense, kFp8, 512, 10240, 8192, 1, 0}, 128, 160, 7, 2, 1, 214332},
    {{Kind::kDense, kFp8, 1024, 1024, 1024, 1, 0}, 128, 64, 9, 2, 1, 227132},
    {{Kind::kDense, kFp8, 1100, 2888, 128, 1, 0}, 192, 128, 5, 1, 1, 221500},
    {{Kind::kDense, kFp8, 2048, 2048, 2048, 1, 0}, 240, 128, 6, 1, 2, 208700},
    {{Kind::kDense, kFp8, 4096, 2112, 7168, 1, 0}, 128, 256, 5, 2, 1, 205116},
};

// Where 148 and 152 multiprocessors make a difference, or only 148 were asked for.
constexpr Fact kB200Facts[] = {
    {{Kind::kDense, kMxfp8, 64, 2112, 7168, 1, 0}, 64, 16, 20, 1, 1, 230204},
    {{Kind::kDense, kMxfp8, 128, 7168, 2048, 1, 0}, 64, 128, 10, 1, 2, 224060},
    {{Kind::kDense, kMxfp8, 512, 512, 512, 1, 0}, 128, 16, 12, 2, 1, 230204},
    {{Kind::kDense, kMxfp8, 1100, 2888, 128, 1, 0}, 192, 128, 5, 1, 1, 221500},
    {{Kind::kDense, kMxfp8, 4096, 4096, 4096, 1, 0}, 240, 128, 6, 1, 2, 208700},
    {{Kind::kDense, kMxfp8, 8192, 8192, 8192, 1, 0}, 128, 256, 5, 2, 1, 205116},
    {{Kind::kDense, kMxfp4, 64, 2112, 7168, 1, 0}, 64, 16, 18, 1, 1, 226108},
    {{Kind::kDense, kMxfp4, 128, 7168, 2048, 1, 0}, 64, 128, 9, 1, 2, 211772},
    {{Kind::kDense, kMxfp4, 512, 512, 512, 1, 0}, 128, 16, 11, 2, 1, 223036},
    {{Kind::kDense, kMxfp4, 1100, 2888, 128, 1, 0}, 192, 128, 5, 1, 1, 229180},
    {{Kind::kDense, kMxfp4, 4096, 4096, 4096, 1, 0}, 240, 128, 6, 1, 2, 217916},
    {{Kind::kDense, kMxfp4, 8192, 8192, 8192, 1, 0}, 128, 256, 5, 2, 1, 212796},
    {{Kind::kDense, kFp8, 16, 28672, 4096, 1, 0}, 32, 224, 6, 1, 1, 210748},
    {{Kind::kDense, kFp8, 512, 28672, 4096, 1, 0}, 128, 224, 6, 2, 1, 210748},
    {{Kind::kDense, kFp8, 512, 57344, 8192, 1, 0}, 128, 224, 6, 2, 1, 210748},
    {{Kind::kDense, kFp8, 4096, 4096, 4096, 1, 0}, 240, 128, 6, 1, 2, 208700},
    {{Kind::kDense, kFp8, 4096, 4096, 7168, 1, 0}, 240, 128, 6, 1, 2, 208700},
    {{Kind::kDense, kFp8, 4096, 7168, 2048, 1, 0}, 128, 224, 6, 2, 1, 210748},
    {{Kind::kDense, kFp8, 4096, 7168, 16384, 1, 0}, 128, 224, 6, 2, 1, 210748},
};
constexpr Fact kGb200Facts[] = {
    {{Kind::kDense, kFp8, 16, 28672, 4096, 1, 0}, 32, 192, 7, 1, 1, 220476},
    {{Kind::kDense, kFp8, 512, 28672, 4096, 1, 0}, 128, 256, 5, 2, 1, 205116},
    {{Kind::kDense, kFp8, 512, 57344, 8192, 1, 0}, 128, 256, 5, 2, 1, 205116},
    {{Kind::kDense, kFp8, 4096, 4096, 4096, 1, 0}, 128, 224, 6, 2, 1, 210748},
    {{Kind::kDense, kFp8, 4096, 4096, 7168, 1, 0}, 128, 224, 6, 2, 1, 210748},
    {{Kind::kDense, kFp8, 4096, 7168, 2048, 1, 0}, 128, 256, 5, 2, 1, 205116},
    {{Kind::kDense, kFp8, 4096, 7168, 16384, 1, 0}, 128, 256, 5, 2, 1, 205116},
};
// clang-format on

bool holds(const Fact& fact, const Target& target) {
    const Config config = choose(fact.problem, target);
    const bool same = config.block_m == fact.block_m && config.block_n == fact.block_n &&
                      config.stages == fact.stages && config.cluster_m == fact.cluster_m &&
                      config.cluster_n == fact.cluster_n &&
                      config.shared_bytes == fact.shared_bytes;
    if (!same) {
        std::fprintf(stderr, "FAILED: %dx%dx%d: chose %s\n", fact.problem.m, fact.problem.n,
                     fact.problem.k, to_string(config).c_str());
    }
    return same;
}

// Kernels are compiled for a device, or it is rejected with a reason that contains `word`.
bool resolves(const Target& device, const char* word) {
    try {
        const Target found = target_of(device.major, device.multiprocessors);
        return word == nullptr && found.major == device.major &&
               found.multiprocessors == device.multiprocessors;
    } catch (const std::invalid_argument& error) {
        return word != nullptr && std::strstr(error.what(), word) != nullptr;
    }
}

struct Device {
    Target target;
    const char* refusal;
};
constexpr Device kDevices[] = {
    {kSm90, nullptr},
    {kB200, nullptr},
    {kGb200, nullptr},
    {{9, 114}, "compiled for 132 multiprocessors, this device has 114"},  // H100 PCIe
    {{10, 160}, "compiled for 148 or 152 multiprocessors, this device has 160"},
    {{9, 152}, "compiled for 132"},
    {{12, 148}, "sm_90a and sm_100a"},
};

}  // namespace

int main() {
    int failures = 0;
    for (const Fact& fact : kFacts) failures += holds(fact, kSm90) ? 0 : 1;
    for (const Fact& fact : kSm100Facts) {
        failures += holds(fact, kB200) && holds(fact, kGb200) ? 0 : 1;
    }
    for (const Fact& fact : kB200Facts) failures += holds(fact, kB200) ? 0 : 1;
    for (const Fact& fact : kGb200Facts) failures += holds(fact, kGb200) ? 0 : 1;
    for (const Device& device : kDevices) {
        if (resolves(device.target, device.refusal)) continue;
        std::fprintf(stderr, "FAILED: compute capability %d with %d multiprocessors\n",
                     device.target.major, device.target.multiprocessors);
        ++failures;
    }
    const int count =
        static_cast<int>(std::size(kFacts) + std::size(kSm100Facts) + std::size(kB200Facts) +
                         std::size(kGb200Facts) + std::size(kDevices));
    std::printf("%d of %d facts hold\n", count - failures, count);
    return failures == 0 ? 0 : 1;
}
