#include "Kernels/quantize/config.h"

#include <string>

#include "Kernels/device/integers.h"
#include "Kernels/device/require.h"

namespace quantize {
namespace {

constexpr int kWarp = 32;
// Threads of a block that holds several rows.
constexpr int kManyRowsThreads = 128;
// Packets in flight per thread that keep memory busy; more only if the row is too long.
constexpr int kPreferredVectors = 4;
// Larger blocks leave too few others to work while they wait for their reduction.
constexpr int kPreferredThreads = 512;

using device::divide_up;
using device::power_of_two_from;

}  // namespace

RowConfig choose_row(std::int64_t packets) {
    device::require(packets >= 1, "packets is " + std::to_string(packets) + "; give at least 1");
    if (packets <= kWarp * kPreferredVectors) {
        const int lanes = power_of_two_from(divide_up(packets, kPreferredVectors));
        const int vectors = power_of_two_from(divide_up(packets, lanes));
        return {lanes, kManyRowsThreads / lanes, vectors, 1};
    }
    int vectors = kPreferredVectors;
    int most = kPreferredThreads;
    if (packets > std::int64_t{vectors} * most) {
        vectors = kRowMaxVectors;
        if (packets > std::int64_t{vectors} * most) most = kRowMaxThreads;
    }
    const std::int64_t chunks = divide_up(packets, std::int64_t{vectors} * most);
    const std::int64_t threads = divide_up(packets, chunks * vectors);
    return {static_cast<int>(divide_up(threads, kWarp)) * kWarp, 1, vectors,
            static_cast<int>(chunks)};
}

RowConfig choose_warps(std::int64_t packets) {
    if (packets > kWarp * kPreferredVectors) return choose_row(packets);
    device::require(packets >= 1, "packets is " + std::to_string(packets) + "; give at least 1");
    const int vectors = power_of_two_from(divide_up(packets, kWarp));
    return {kWarp, kManyRowsThreads / kWarp, vectors, 1};
}

}  // namespace quantize
