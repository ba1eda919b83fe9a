// The parts around a timed sample: L2 flush, the kernel that holds the stream, clock stamps.
//
// None of it runs between the two events of a sample.

#include "Kernels/benchmarks/harness/device/cuda/kernels.h"
#include "Kernels/benchmarks/harness/device/cuda/launch.cuh"
#include "Kernels/device/ptx/memory.cuh"
#include "Kernels/device/ptx/registers.cuh"

namespace ptx = device::ptx;

namespace harness_device {
namespace {

constexpr uint64_t kLineBytes = 128;  // of the L2

// More multiprocessors than any card has; ids need not be contiguous.
constexpr uint32_t kHeads = 1024;

// Flushes end with the default cache policy. Lines read or written with a streaming hint are
// evicted first, so a flush made of them would leave everybody else's lines in place, and work that
// itself streams would find more or less of the cache free depending on what ran before it.
__global__ void flush_write_kernel(uint4* out, uint64_t vectors) {
    for (uint64_t index = grid_thread(); index < vectors; index += grid_threads()) {
        uint32_t word = static_cast<uint32_t>(index);
        out[index] = make_uint4(word, ~word, word * 3, word * 5);
    }
}

// The compiler cannot rule out the store to `sink`, which keeps the loads alive.
__global__ void flush_read_kernel(const uint4* in, uint64_t vectors, uint32_t* sink) {
    uint32_t sum = 0;
    for (uint64_t index = grid_thread(); index < vectors; index += grid_threads()) {
        uint4 value = in[index];
        sum += value.x ^ value.y ^ value.z ^ value.w;
    }
    if (sum == 0x9E3779B9u) *sink = sum;
}

// A line with the highest priority is evicted by such lines only. Once these have replaced all
// others, they become ordinary again, and the rest of the flush replaces them.
__global__ void flush_pinned_kernel(const uint4* in, uint64_t vectors, uint32_t* sink) {
    const uint64_t policy = ptx::evict_last_policy();
    uint32_t sum = 0;
    for (uint64_t index = grid_thread(); index < vectors; index += grid_threads()) {
        uint4 value = ptx::load_16_by_policy(in + index, policy);
        sum += value.x ^ value.y ^ value.z ^ value.w;
    }
    if (sum == 0x9E3779B9u) *sink = sum;
}

__global__ void unpin_kernel(const uint4* in, uint64_t lines) {
    for (uint64_t line = grid_thread(); line < lines; line += grid_threads()) {
        ptx::make_evictable_128(in + line * (kLineBytes / sizeof(uint4)));
    }
}

__global__ void hold_kernel(const uint32_t* flag, uint32_t* outcome, uint64_t limit_ns) {
    uint64_t start = ptx::global_timer_ns();
    uint32_t result = kReleased;
    while (ptx::load_host_word(flag) == 0) {
        if (ptx::global_timer_ns() - start > limit_ns) {
            result = kTimedOut;
            break;
        }
    }
    *outcome = result;
    __threadfence_system();  // the host reads it after the stream, or while the kernel ends
}

struct Stamp {
    uint64_t cycles;
    uint64_t nanoseconds;
};

// Cycles at a timer tick: the timer moves in steps, and a reading at the edge of a step is exact,
// while one in between is off by up to a step.
__device__ Stamp read_clocks() {
    uint64_t before = ptx::global_timer_ns();
    uint64_t now = before;
    while (now == before) now = ptx::global_timer_ns();
    return {static_cast<uint64_t>(clock64()), now};
}

// Cycle counters of different multiprocessors are unrelated, so each keeps its own head.
struct Head {
    unsigned long long epoch;
    Stamp stamp;
};

__global__ void stamp_head_kernel(Head* heads, uint64_t epoch) {
    uint32_t id = ptx::multiprocessor_id();
    if (id >= kHeads) return;
    // Several blocks may share a multiprocessor: the first to claim its head writes it.
    if (atomicExch(&heads[id].epoch, epoch) == epoch) return;
    heads[id].stamp = read_clocks();
}

__global__ void stamp_tail_kernel(const Head* heads, unsigned long long* claim, uint64_t epoch,
                                  uint64_t window_ns, volatile uint64_t* result) {
    uint32_t id = ptx::multiprocessor_id();
    if (id >= kHeads || heads[id].epoch != epoch) return;
    if (atomicExch(claim, epoch) == epoch) return;  // another block answers
    Stamp head = heads[id].stamp;
    while (ptx::global_timer_ns() - head.nanoseconds < window_ns) {
    }
    Stamp tail = read_clocks();
    result[0] = tail.cycles - head.cycles;
    result[1] = tail.nanoseconds - head.nanoseconds;
    __threadfence_system();  // the host reads it after the stream
}

}  // namespace

void release_l2(size_t stream) {
    check(cudaCtxResetPersistingL2Cache(), "cudaCtxResetPersistingL2Cache");
    size_t reserved = 0;
    check(cudaDeviceGetLimit(&reserved, cudaLimitPersistingL2CacheSize), "cudaDeviceGetLimit");
    if (reserved != 0) {
        check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0), "cudaDeviceSetLimit");
    }
    cudaStreamAttrValue nothing = {};
    nothing.accessPolicyWindow.hitProp = cudaAccessPropertyNormal;
    nothing.accessPolicyWindow.missProp = cudaAccessPropertyNormal;
    check(
        cudaStreamSetAttribute(as_stream(stream), cudaStreamAttributeAccessPolicyWindow, &nothing),
        "cudaStreamSetAttribute");
}

void flush_l2(size_t buffer, uint64_t bytes, size_t scratch, size_t stream) {
    uint64_t vectors = bytes / 2 / sizeof(uint4);
    uint4* written = as_pointer<uint4>(buffer);
    const uint4* read = written + vectors;
    flush_pinned_kernel<<<kBlocks, kThreads, 0, as_stream(stream)>>>(read, vectors,
                                                                     as_pointer<uint32_t>(scratch));
    check(cudaGetLastError(), "flush_l2 pinned");
    unpin_kernel<<<kBlocks, kThreads, 0, as_stream(stream)>>>(read, bytes / 2 / kLineBytes);
    check(cudaGetLastError(), "flush_l2 unpin");
    flush_write_kernel<<<kBlocks, kThreads, 0, as_stream(stream)>>>(written, vectors);
    check(cudaGetLastError(), "flush_l2 write");
    flush_read_kernel<<<kBlocks, kThreads, 0, as_stream(stream)>>>(read, vectors,
                                                                   as_pointer<uint32_t>(scratch));
    check(cudaGetLastError(), "flush_l2 read");
}

void hold(size_t flag, size_t outcome, uint64_t limit_ns, size_t stream) {
    hold_kernel<<<1, 1, 0, as_stream(stream)>>>(as_pointer<uint32_t>(flag),
                                                as_pointer<uint32_t>(outcome), limit_ns);
    check(cudaGetLastError(), "hold");
}

size_t stamp_bytes() { return kHeads * sizeof(Head) + sizeof(unsigned long long); }

void stamp_head(size_t stamps, uint32_t multiprocessors, uint64_t epoch, size_t stream) {
    stamp_head_kernel<<<multiprocessors, 1, 0, as_stream(stream)>>>(as_pointer<Head>(stamps),
                                                                    epoch);
    check(cudaGetLastError(), "stamp_head");
}

void stamp_tail(size_t stamps, uint32_t multiprocessors, uint64_t epoch, uint64_t window_ns,
                size_t result, size_t stream) {
    Head* heads = as_pointer<Head>(stamps);
    stamp_tail_kernel<<<multiprocessors, 1, 0, as_stream(stream)>>>(
        heads, reinterpret_cast<unsigned long long*>(heads + kHeads), epoch, window_ns,
        as_pointer<volatile uint64_t>(result));
    check(cudaGetLastError(), "stamp_tail");
}

}  // namespace harness_device

namespace harness_work {
namespace {

__global__ void spin_kernel(uint64_t duration_ns) {
    uint64_t start = ptx::global_timer_ns();
    while (ptx::global_timer_ns() - start < duration_ns) {
    }
}

}  // namespace

void spin(uint64_t duration_ns, size_t stream) {
    spin_kernel<<<1, 1, 0, harness_device::as_stream(stream)>>>(duration_ns);
    harness_device::check(cudaGetLastError(), "spin");
}

}  // namespace harness_work
