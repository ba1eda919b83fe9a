// Times every config of every op on given shapes: the data behind config.cc.
//
//   nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -I. Kernels/norms/*.cu
//        Kernels/norms/config.cc -o tune
//   ./tune [--op NAME] [--type bf16|f16|f32] [--top N] MxN...   > all.csv      (summary on stderr)
//   ./tune --check [--op NAME] [--type ...] MxN...      holds every config to the plain kernels
//
// Not a benchmark: no gate, no interleaving. It ranks configs of one kernel; the numbers that count
// come from bench_norms.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "Kernels/device/launch.h"
#include "Kernels/norms/cross_entropy_backward.h"
#include "Kernels/norms/cross_entropy_forward.h"
#include "Kernels/norms/fused_add_rmsnorm.h"
#include "Kernels/norms/kernel.cuh"
#include "Kernels/norms/layernorm_forward.h"
#include "Kernels/norms/norm_backward.h"
#include "Kernels/norms/rmsnorm_forward.h"
#include "Kernels/norms/softmax_backward.h"
#include "Kernels/norms/softmax_forward.h"

namespace {

using namespace norms;
using device::check;

struct Problem {
    Shape shape;
    ElementType type;
    std::size_t matrix_bytes() const {
        return static_cast<std::size_t>(shape.rows) * shape.columns * shape.element_bytes;
    }
};

// Device memory of one rotating set; the largest op has three matrices.
struct Buffers {
    void* matrix[3];
    void* columns[4];
    void* rows[4];
    void* workspace;
    std::size_t workspace_bytes;
};

__global__ void fill(__nv_bfloat16* out, std::size_t count) {
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
        const unsigned bits =
            static_cast<unsigned>(i * 2654435761u) ^ static_cast<unsigned>(i >> 7);
        out[i] = __float2bfloat16_rn(static_cast<float>(bits >> 8) * 0x1p-23f - 1.0f);
    }
}

// Bytes that look like bf16 values in [-1, 1): as f16 and f32 they are finite and varied too.
void* allocate(std::size_t bytes, bool random) {
    void* address = nullptr;
    check(cudaMalloc(&address, bytes), "cudaMalloc");
    check(cudaMemset(address, 0, bytes), "cudaMemset");
    if (random) fill<<<1024, 256>>>(static_cast<__nv_bfloat16*>(address), bytes / 2);
    check(cudaGetLastError(), "fill");
    return address;
}

struct Op {
    const char* name;
    RowUse use;
    int matrices;  // read or written once each
    // With the config; the chosen one where it is null; the plain kernels where it is &kPlain.
    std::function<void(const Problem&, const Buffers&, const Config*, cudaStream_t)> launch;
    // Places in Buffers of what it writes.
    std::vector<int> out_matrices;
    std::vector<int> out_columns;
    std::vector<int> out_rows;
};

const Config kPlain;

template <class Params>
void launch_one(Params params, const Problem& problem, const Config* config, cudaStream_t stream) {
    params.rows = problem.shape.rows;
    params.columns = problem.shape.columns;
    params.type = problem.type;
    if (config == &kPlain) return launch_plain(params, stream);
    launch(params, config != nullptr ? *config : config_of(params), stream);
}

NormBackward backward(Norm norm, const Problem& problem, const Buffers& b) {
    NormBackward params = {};
    params.norm = norm;
    params.x = b.matrix[0];
    params.weight = b.columns[0];
    params.out_gradient = b.matrix[1];
    params.mean = norm == Norm::kLayer ? static_cast<float*>(b.rows[0]) : nullptr;
    params.rstd = static_cast<float*>(b.rows[1]);
    params.x_gradient = b.matrix[2];
    params.weight_gradient = b.columns[1];
    params.bias_gradient = norm == Norm::kLayer ? b.columns[2] : nullptr;
    params.workspace = b.workspace;
    params.workspace_bytes = b.workspace_bytes;
    params.weight_type = problem.type;
    return params;
}

std::vector<Op> all_ops() {
    using P = const Problem&;
    using B = const Buffers&;
    using C = const Config*;
    using S = cudaStream_t;
    return {
        {"rmsnorm_fwd",
         RowUse::kOneRow,
         2,
         [](P p, B b, C c, S s) {
             launch_one(RmsNormForward{b.matrix[0], b.columns[0], b.matrix[1], nullptr, 0, 0,
                                       p.type, p.type, 1e-6f},
                        p, c, s);
         },
         {1},
         {},
         {}},
        {"fused_add_rmsnorm",
         RowUse::kInPlace,
         4,
         [](P p, B b, C c, S s) {
             launch_one(FusedAddRmsNorm{b.matrix[0], b.matrix[1], b.columns[0], 0, 0, p.type,
                                        p.type, 1e-6f},
                        p, c, s);
         },
         {0, 1},
         {},
         {}},
        {"layernorm_fwd",
         RowUse::kCentredRow,
         2,
         [](P p, B b, C c, S s) {
             launch_one(LayerNormForward{b.matrix[0], b.columns[0], b.columns[1], b.matrix[1],
                                         nullptr, nullptr, 0, 0, p.type, p.type, 1e-5f},
                        p, c, s);
         },
         {1},
         {},
         {}},
        {"softmax_fwd",
         RowUse::kExponentials,
         2,
         [](P p, B b, C c, S s) {
             launch_one(SoftmaxForward{b.matrix[0], b.matrix[1], 0, 0, p.type}, p, c, s);
         },
         {1},
         {},
         {}},
        {"softmax_bwd",
         RowUse::kTwoRows,
         3,
         [](P p, B b, C c, S s) {
             launch_one(SoftmaxBackward{b.matrix[0], b.matrix[1], b.matrix[2], 0, 0, p.type}, p, c,
                        s);
         },
         {2},
         {},
         {}},
        {"cross_entropy_fwd",
         RowUse::kReadOnce,
         1,
         [](P p, B b, C c, S s) {
             launch_one(CrossEntropyForward{b.matrix[0], static_cast<std::int64_t*>(b.rows[3]),
                                            static_cast<float*>(b.rows[0]),
                                            static_cast<float*>(b.rows[1]), 0, 0, p.type},
                        p, c, s);
         },
         {},
         {},
         {0, 1}},
        {"cross_entropy_bwd",
         RowUse::kRowAlone,
         2,
         [](P p, B b, C c, S s) {
             launch_one(
                 CrossEntropyBackward{b.matrix[0], static_cast<std::int64_t*>(b.rows[3]),
                                      static_cast<float*>(b.rows[0]),
                                      static_cast<float*>(b.rows[1]), b.matrix[1], 0, 0, p.type},
                 p, c, s);
         },
         {1},
         {},
         {}},
        {"rmsnorm_bwd",
         RowUse::kAccumulate,
         3,
         [](P p, B b, C c, S s) { launch_one(backward(Norm::kRms, p, b), p, c, s); },
         {2},
         {1},
         {}},
        {"layernorm_bwd",
         RowUse::kAccumulateBoth,
         3,
         [](P p, B b, C c, S s) { launch_one(backward(Norm::kLayer, p, b), p, c, s); },
         {2},
         {1, 2},
         {}},
    };
}

// Every cut of a row, and for each several sizes of the grid.
std::vector<Config> candidates(const Shape& shape, RowUse use, int multiprocessors) {
    const Config chosen = choose(shape, {multiprocessors}, use);
    const std::int64_t row_bytes = std::int64_t{shape.columns} * shape.element_bytes;
    const std::int64_t packets = (row_bytes + kPacketBytes - 1) / kPacketBytes + !chosen.aligned;
    std::vector<Config> found = {chosen};
    const auto add = [&](Config config) {
        if (accumulates(use) && config.aligned && config.vectors == kMostVectors) return;
        const std::int64_t all = (shape.rows + config.rows_per_block - 1) / config.rows_per_block;
        const bool may_be_alone = config.aligned && !accumulates(use) &&
                                  config.rows_per_block == 1 && config.cluster_blocks == 1 &&
                                  config.vectors <= 4;
        for (const int per_multiprocessor : {0, 1, 2, 3, 4, 6, 8, 12, 16, 24}) {
            const std::int64_t capped = std::int64_t{per_multiprocessor} * multiprocessors;
            const bool unbounded = per_multiprocessor == 0;
            // The sums over rows of an unbounded grid would not fit in the workspace.
            if (unbounded && accumulates(use) && config.aligned && all > 2048) continue;
            // A ring is for blocks that stay.
            if (unbounded && config.stages > 0) continue;
            // More blocks than a multiprocessor holds, or far fewer threads than it needs.
            const int threads = per_multiprocessor * config.threads_per_row * config.rows_per_block;
            if (threads > 2048 || (!unbounded && threads < 128)) continue;
            const std::int64_t staged = std::int64_t{shared_bytes(config, shape, use)} + 2048;
            if (config.stages > 0 && per_multiprocessor * staged > 227 * 1024) continue;
            if (capped >= all) continue;
            config.alone = unbounded && may_be_alone && config.stages == 0;
            config.blocks = unbounded ? all * config.cluster_blocks
                                      : std::max<std::int64_t>(1, capped / config.cluster_blocks) *
                                            config.cluster_blocks;
            try {
                validate(config, shape, use);
                found.push_back(config);
            } catch (const std::invalid_argument&) {
                // Not a cut of this row.
            }
        }
    };
    for (const int vectors : {1, 2, 4, 8}) {
        for (const int blocks : {1, 2, 4, 8}) {
            Config config = chosen;
            config.vectors = vectors;
            config.cluster_blocks = blocks;
            config.chunks = 1;
            config.rows_per_block = 1;
            config.stages = 0;
            const std::int64_t share =
                (packets + std::int64_t{vectors} * blocks - 1) / (std::int64_t{vectors} * blocks);
            config.threads_per_row = static_cast<int>((share + 31) / 32 * 32);
            if (blocks == 1 || share >= 64) add(config);
            if (blocks == 1 && config.aligned) {
                Config staged = config;
                for (const int stages : {1, 2, 3, 4, 6}) {
                    staged.stages = stages;
                    add(staged);
                }
            }
            for (const int threads : {8, 16, 32}) {
                if (blocks > 1 || threads * vectors < packets) continue;
                for (const int block : {64, 128, 256, 512}) {
                    config.threads_per_row = threads;
                    config.rows_per_block = block / threads;
                    add(config);
                }
            }
        }
    }
    return found;
}

std::size_t largest_workspace(const Problem& problem, int multiprocessors) {
    NormBackward params = backward(Norm::kLayer, problem, Buffers{});
    params.rows = problem.shape.rows;
    params.columns = problem.shape.columns;
    params.type = problem.type;
    std::size_t largest = 0;
    for (const Config& config :
         candidates(problem.shape, RowUse::kAccumulateBoth, multiprocessors)) {
        largest = std::max(largest, workspace_bytes(params, config));
    }
    return std::max(largest, plain_workspace_bytes(params));
}

// Together they leave the L2 full of other, clean data of normal priority.
__global__ void write_all(uint4* written, std::size_t count) {
    const std::size_t first = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = first; i < count; i += step) written[i] = make_uint4(1, 2, 3, 4);
}
__global__ void read_all(const uint4* read, std::size_t count, unsigned* never) {
    const std::size_t first = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    unsigned sum = 0;
    for (std::size_t i = first; i < count; i += step) sum |= read[i].x;
    if (sum == 0xffffffffu) *never = sum;
}

struct Flush {
    void* written;
    void* read;
    std::size_t bytes;
};
Flush flush;

double median_us(const std::function<void(int)>& enqueue, cudaStream_t stream) {
    constexpr int kWarmUp = 3;
    constexpr int kSamples = 13;
    std::vector<cudaEvent_t> events(2 * kSamples);
    for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "cudaEventCreate");
    for (int i = 0; i < kWarmUp; ++i) enqueue(i);
    for (int i = 0; i < kSamples; ++i) {
        const std::size_t count = flush.bytes / sizeof(uint4);
        write_all<<<1056, 512, 0, stream>>>(static_cast<uint4*>(flush.written), count);
        read_all<<<1056, 512, 0, stream>>>(static_cast<const uint4*>(flush.read), count,
                                           static_cast<unsigned*>(flush.written));
        check(cudaEventRecord(events[2 * i], stream), "cudaEventRecord");
        enqueue(i);
        check(cudaEventRecord(events[2 * i + 1], stream), "cudaEventRecord");
    }
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    std::vector<float> times;
    for (int i = 0; i < kSamples; ++i) {
        float ms = 0.0f;
        check(cudaEventElapsedTime(&ms, events[2 * i], events[2 * i + 1]), "cudaEventElapsedTime");
        times.push_back(ms * 1000.0f);
    }
    for (const cudaEvent_t event : events) check(cudaEventDestroy(event), "cudaEventDestroy");
    std::nth_element(times.begin(), times.begin() + kSamples / 2, times.end());
    return times[kSamples / 2];
}

// The largest magnitude, as bits: those of floats that are not negative order like the floats.
template <class T>
__global__ void find_largest(const T* values, std::size_t count, unsigned* largest) {
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
        atomicMax(largest, __float_as_uint(fabsf(device::to_float(values[i]))));
    }
}

// Counts elements that differ by more than a few roundings.
template <class T>
__global__ void compare(const T* out, const T* expected, std::size_t count, const unsigned* largest,
                        float tolerance, unsigned* differences) {
    const float floor = 0.05f * __uint_as_float(*largest);
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
        const float a = device::to_float(out[i]);
        const float b = device::to_float(expected[i]);
        // Written so that NaN differs from everything but NaN.
        const bool same = fabsf(a - b) <= tolerance * fmaxf(floor, fabsf(b));
        if (!same && !(isnan(a) && isnan(b))) atomicAdd(differences, 1u);
    }
}

struct Output {
    void* address;
    std::size_t bytes;
    bool wide;
    void* before;
    void* expected;
    unsigned* largest;
};

// Every config's outputs against those of the plain kernels.
int check_configs(const Op& op, const Problem& problem, const Buffers& buffers, int multiprocessors,
                  cudaStream_t stream) {
    const auto copy = [&](void* to, const void* from, std::size_t bytes) {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy");
    };
    std::vector<Output> outputs;
    const auto add = [&](void* address, std::size_t bytes, bool wide) {
        outputs.push_back({address, bytes, wide, allocate(bytes, false), allocate(bytes, false),
                           static_cast<unsigned*>(allocate(sizeof(unsigned), false))});
        copy(outputs.back().before, address, bytes);
    };
    for (const int i : op.out_matrices) add(buffers.matrix[i], problem.matrix_bytes(), false);
    const std::size_t columns = static_cast<std::size_t>(problem.shape.columns);
    for (const int i : op.out_columns) {
        add(buffers.columns[i], columns * problem.shape.element_bytes, false);
    }
    for (const int i : op.out_rows) {
        add(buffers.rows[i], static_cast<std::size_t>(problem.shape.rows) * 4, true);
    }
    op.launch(problem, buffers, &kPlain, stream);
    for (const Output& output : outputs) {
        copy(output.expected, output.address, output.bytes);
        dispatch_type(output.wide ? ElementType::kF32 : problem.type, [&](auto element) {
            using T = decltype(element);
            find_largest<T><<<1024, 256, 0, stream>>>(static_cast<const T*>(output.expected),
                                                      output.bytes / sizeof(T), output.largest);
        });
    }
    unsigned* differences = static_cast<unsigned*>(allocate(sizeof(unsigned), false));
    int wrong = 0;
    const std::vector<Config> configs = candidates(problem.shape, op.use, multiprocessors);
    for (const Config& config : configs) {
        for (const Output& output : outputs) copy(output.address, output.before, output.bytes);
        op.launch(problem, buffers, &config, stream);
        check(cudaMemsetAsync(differences, 0, sizeof(unsigned), stream), "cudaMemsetAsync");
        for (const Output& output : outputs) {
            dispatch_type(output.wide ? ElementType::kF32 : problem.type, [&](auto element) {
                using T = decltype(element);
                compare<T><<<1024, 256, 0, stream>>>(static_cast<const T*>(output.address),
                                                     static_cast<const T*>(output.expected),
                                                     output.bytes / sizeof(T), output.largest,
                                                     sizeof(T) == 4 ? 1e-4f : 2e-2f, differences);
            });
        }
        unsigned found = 0;
        check(cudaMemcpyAsync(&found, differences, sizeof(found), cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync");
        check(cudaStreamSynchronize(stream), describe(config).c_str());
        if (found == 0) continue;
        ++wrong;
        std::fprintf(stderr, "WRONG %s %s: %u elements\n", op.name, describe(config).c_str(),
                     found);
    }
    std::fprintf(stderr, "%-18s %lldx%d: %d of %zu configs wrong\n", op.name,
                 static_cast<long long>(problem.shape.rows), problem.shape.columns, wrong,
                 configs.size());
    for (const Output& output : outputs) {
        check(cudaFree(output.before), "cudaFree");
        check(cudaFree(output.expected), "cudaFree");
        check(cudaFree(output.largest), "cudaFree");
    }
    check(cudaFree(differences), "cudaFree");
    return wrong;
}

struct Outcome {
    Config config;
    double us;
};

void tune(const Op& op, const Problem& problem, const std::vector<Buffers>& sets, int top,
          int multiprocessors, cudaStream_t stream) {
    const double bytes = static_cast<double>(op.matrices) * problem.matrix_bytes();
    std::vector<Outcome> outcomes;
    for (const Config& config : candidates(problem.shape, op.use, multiprocessors)) {
        const double us = median_us(
            [&](int i) { op.launch(problem, sets[i % sets.size()], &config, stream); }, stream);
        outcomes.push_back({config, us});
        std::printf("%s,%d,%lld,%d,%s,%.3f,%.4f\n", op.name, static_cast<int>(problem.type),
                    static_cast<long long>(problem.shape.rows), problem.shape.columns,
                    describe(config).c_str(), us, bytes / us * 1e-6);
    }
    std::fflush(stdout);
    const double chosen_us = outcomes.front().us;
    std::fprintf(stderr, "%-18s type %d %lldx%d  chosen %s: %.2f us, %.3f TB/s\n", op.name,
                 static_cast<int>(problem.type), static_cast<long long>(problem.shape.rows),
                 problem.shape.columns, describe(outcomes.front().config).c_str(), chosen_us,
                 bytes / chosen_us * 1e-6);
    std::sort(outcomes.begin(), outcomes.end(),
              [](const Outcome& a, const Outcome& b) { return a.us < b.us; });
    for (int i = 0; i < top && i < static_cast<int>(outcomes.size()); ++i) {
        std::fprintf(stderr, "    %-28s %10.2f us  %.3f TB/s  %.3fx\n",
                     describe(outcomes[i].config).c_str(), outcomes[i].us,
                     bytes / outcomes[i].us * 1e-6, chosen_us / outcomes[i].us);
    }
}

int run(int argc, char** argv) {
    std::string wanted;
    ElementType type = ElementType::kBf16;
    int top = 4;
    bool checks = false;
    int wrong = 0;
    std::vector<Shape> shapes;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        long long rows = 0;
        int columns = 0;
        if (word == "--op" && i + 1 < argc) {
            wanted = argv[++i];
        } else if (word == "--type" && i + 1 < argc) {
            const std::string name = argv[++i];
            type = name == "f32"   ? ElementType::kF32
                   : name == "f16" ? ElementType::kF16
                                   : ElementType::kBf16;
        } else if (word == "--check") {
            checks = true;
        } else if (word == "--top" && i + 1 < argc) {
            top = std::atoi(argv[++i]);
        } else if (std::sscanf(word.c_str(), "%lldx%d", &rows, &columns) == 2) {
            shapes.push_back({rows, columns, 0});
        } else {
            std::fprintf(stderr, "tune: '%s' is neither an option nor MxN\n", word.c_str());
            return 2;
        }
    }
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    flush.bytes = static_cast<std::size_t>(properties.l2CacheSize) * 2;
    flush.written = allocate(flush.bytes, false);
    flush.read = allocate(flush.bytes, true);
    for (Shape shape : shapes) {
        shape.element_bytes = element_bytes(type);
        const Problem problem = {shape, type};
        const std::size_t bytes = problem.matrix_bytes();
        // Together at least twice the L2, so that no set is still in it when its turn comes.
        const std::size_t count =
            std::clamp<std::size_t>(2 * properties.l2CacheSize / bytes, 1, 64);
        std::vector<Buffers> sets(count);
        std::vector<void*> addresses;
        const auto allocated = [&](std::size_t size, bool random) {
            addresses.push_back(allocate(size, random));
            return addresses.back();
        };
        const std::size_t rows = static_cast<std::size_t>(shape.rows);
        const std::size_t columns = static_cast<std::size_t>(shape.columns);
        for (Buffers& set : sets) {
            for (void*& matrix : set.matrix) matrix = allocated(bytes, true);
            for (void*& vector : set.columns) vector = allocated(columns * sizeof(float), true);
            for (void*& vector : set.rows) {
                vector = allocated(rows * sizeof(std::int64_t), &vector != &set.rows[3]);
            }
            set.workspace_bytes = largest_workspace(problem, properties.multiProcessorCount);
            set.workspace = allocated(set.workspace_bytes, false);
        }
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        const double copy_us = median_us(
            [&](int i) {
                const Buffers& set = sets[i % count];
                check(cudaMemcpyAsync(set.matrix[1], set.matrix[0], bytes, cudaMemcpyDeviceToDevice,
                                      stream),
                      "cudaMemcpyAsync");
            },
            stream);
        std::fprintf(stderr, "copy %lldx%d: %.2f us, %.3f TB/s\n",
                     static_cast<long long>(shape.rows), shape.columns, copy_us,
                     2.0 * static_cast<double>(bytes) / copy_us * 1e-6);
        for (const Op& op : all_ops()) {
            if (!wanted.empty() && wanted != op.name) continue;
            if (checks) {
                wrong +=
                    check_configs(op, problem, sets[0], properties.multiProcessorCount, stream);
                continue;
            }
            tune(op, problem, sets, top, properties.multiProcessorCount, stream);
        }
        for (void* address : addresses) check(cudaFree(address), "cudaFree");
    }
    return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "tune: %s\n", error.what());
        return 1;
    }
}
