// Times every config of every op on given shapes: the data behind config.cc.
//
//   nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -I. Kernels/norms/*.cu
//        Kernels/norms/config.cc -o tune
//   ./tune [--op NAME] [--type bf16|f16|f32] [--top N] MxN...   > all.csv      (summary on stderr)
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
    std::function<void(const Problem&, const Buffers&, const Config*, cudaStream_t)> launch;
};

template <class Params>
void launch_one(Params params, const Problem& problem, const Config* config, cudaStream_t stream) {
    params.rows = problem.shape.rows;
    params.columns = problem.shape.columns;
    params.type = problem.type;
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
        {"rmsnorm_fwd", RowUse::kOneRow, 2,
         [](P p, B b, C c, S s) {
             launch_one(RmsNormForward{b.matrix[0], b.columns[0], b.matrix[1], nullptr, 0, 0,
                                       p.type, p.type, 1e-6f},
                        p, c, s);
         }},
        {"fused_add_rmsnorm", RowUse::kTwoRows, 4,
         [](P p, B b, C c, S s) {
             launch_one(FusedAddRmsNorm{b.matrix[0], b.matrix[1], b.columns[0], 0, 0, p.type,
                                        p.type, 1e-6f},
                        p, c, s);
         }},
        {"layernorm_fwd", RowUse::kReducedTwice, 2,
         [](P p, B b, C c, S s) {
             launch_one(LayerNormForward{b.matrix[0], b.columns[0], b.columns[1], b.matrix[1],
                                         nullptr, nullptr, 0, 0, p.type, p.type, 1e-5f},
                        p, c, s);
         }},
        {"softmax_fwd", RowUse::kOneRow, 2,
         [](P p, B b, C c, S s) {
             launch_one(SoftmaxForward{b.matrix[0], b.matrix[1], 0, 0, p.type}, p, c, s);
         }},
        {"softmax_bwd", RowUse::kTwoRows, 3,
         [](P p, B b, C c, S s) {
             launch_one(SoftmaxBackward{b.matrix[0], b.matrix[1], b.matrix[2], 0, 0, p.type}, p, c,
                        s);
         }},
        {"cross_entropy_fwd", RowUse::kOneRow, 1,
         [](P p, B b, C c, S s) {
             launch_one(CrossEntropyForward{b.matrix[0], static_cast<std::int64_t*>(b.rows[3]),
                                            static_cast<float*>(b.rows[0]),
                                            static_cast<float*>(b.rows[1]), 0, 0, p.type},
                        p, c, s);
         }},
        {"cross_entropy_bwd", RowUse::kOneRow, 2,
         [](P p, B b, C c, S s) {
             launch_one(
                 CrossEntropyBackward{b.matrix[0], static_cast<std::int64_t*>(b.rows[3]),
                                      static_cast<float*>(b.rows[0]),
                                      static_cast<float*>(b.rows[1]), b.matrix[1], 0, 0, p.type},
                 p, c, s);
         }},
        {"rmsnorm_bwd", RowUse::kAccumulate, 3,
         [](P p, B b, C c, S s) { launch_one(backward(Norm::kRms, p, b), p, c, s); }},
        {"layernorm_bwd", RowUse::kAccumulate, 3,
         [](P p, B b, C c, S s) { launch_one(backward(Norm::kLayer, p, b), p, c, s); }},
    };
}

// Every cut of a row, and for each several sizes of the grid.
std::vector<Config> candidates(const Shape& shape, RowUse use, int multiprocessors) {
    const Config chosen = choose(shape, {multiprocessors}, use);
    const std::int64_t row_bytes = std::int64_t{shape.columns} * shape.element_bytes;
    const std::int64_t packets = (row_bytes + kPacketBytes - 1) / kPacketBytes + !chosen.aligned;
    std::vector<Config> found = {chosen};
    const auto add = [&](Config config) {
        if (use == RowUse::kAccumulate && config.aligned && config.vectors == kMostVectors) return;
        const std::int64_t all = (shape.rows + config.rows_per_block - 1) / config.rows_per_block;
        for (const int per_multiprocessor : {0, 1, 2, 3, 4, 6, 8, 12, 16}) {
            const std::int64_t capped = std::int64_t{per_multiprocessor} * multiprocessors;
            // The sums over rows of an unbounded grid would not fit in the workspace.
            if (per_multiprocessor == 0 && use == RowUse::kAccumulate && config.aligned) continue;
            if (capped >= all) continue;
            config.blocks = per_multiprocessor == 0
                                ? all * config.cluster_blocks
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
            const std::int64_t share =
                (packets + std::int64_t{vectors} * blocks - 1) / (std::int64_t{vectors} * blocks);
            config.threads_per_row = static_cast<int>((share + 31) / 32 * 32);
            if (blocks == 1 || share >= 64) add(config);
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
    for (const Config& config : candidates(problem.shape, RowUse::kAccumulate, multiprocessors)) {
        largest = std::max(largest, workspace_bytes(params, config));
    }
    return largest;
}

double median_us(const std::function<void(int)>& enqueue, cudaStream_t stream) {
    constexpr int kWarmUp = 3;
    constexpr int kSamples = 15;
    std::vector<cudaEvent_t> events(2 * kSamples);
    for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "cudaEventCreate");
    for (int i = 0; i < kWarmUp; ++i) enqueue(i);
    for (int i = 0; i < kSamples; ++i) {
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
            tune(op, problem, sets, top, properties.multiProcessorCount, stream);
        }
        for (void* address : addresses) check(cudaFree(address), "cudaFree");
    }
    return 0;
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
