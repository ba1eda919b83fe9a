#include "Kernels/baselines/deep_gemm/gemm.h"
#include "Kernels/device/launch.h"
#include "Kernels/device/scale_tiles.h"

namespace deep_gemm_baseline {
namespace {

constexpr int kBlock = 128;  // elements of k, and columns of b, that share a scale in fp32
constexpr int kPacked = 4;   // scales in a word
constexpr int kThreads = 256;

int words_deep(const Problem& problem) {
    const int depth = kPacked * scale_depth(problem.operands);
    return (problem.k + depth - 1) / depth;
}
std::size_t up_to_4(int value) { return (static_cast<std::size_t>(value) + 3) / 4 * 4; }
std::size_t rooms(const Problem& problem) {
    return problem.kind == Kind::kMasked ? problem.groups : 1;
}

// out[room][word][line]; the scale of block d of k, of place p, of a room is at
// room * room_stride + d * deep_stride + p / places_per_scale * place_stride.
struct Packing {
    const std::uint32_t* scales;
    std::uint32_t* out;
    int line;
    int places;
    int deep;
    int words;
    std::size_t room_stride;
    std::size_t deep_stride;
    std::size_t place_stride;
    int places_per_scale;
};

__global__ void pack(Packing packing) {
    const int place = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (place >= packing.line) return;
    std::uint32_t word = 0;
    for (int part = 0; part < kPacked; ++part) {
        const int block = static_cast<int>(blockIdx.y) * kPacked + part;
        if (block >= packing.deep || place >= packing.places) continue;
        const std::size_t at = blockIdx.z * packing.room_stride + block * packing.deep_stride +
                               place / packing.places_per_scale * packing.place_stride;
        word |= (packing.scales[at] >> 23 & 0xff) << 8 * part;
    }
    const std::size_t row = static_cast<std::size_t>(blockIdx.z) * packing.words + blockIdx.y;
    packing.out[row * packing.line + place] = word;
}

// A word of a tile is a word of the library's: four scales along k.
__global__ void pack_tiles(const std::uint32_t* tiles, std::uint32_t* out, int places, int line) {
    const int place = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (place >= line) return;
    const int words = static_cast<int>(gridDim.y), word = static_cast<int>(blockIdx.y);
    const int down = (places + device::kScaleTileRows - 1) / device::kScaleTileRows;
    // Rooms have whole tiles.
    const std::int64_t row = std::int64_t{blockIdx.z} * down * device::kScaleTileRows + place;
    const std::int64_t from = device::scale_place(row, word * kPacked, words) / kPacked;
    const std::int64_t to = (std::int64_t{blockIdx.z} * words + word) * line + place;
    out[to] = place < places ? tiles[from] : 0;
}

void launch_pack_tiles(const void* tiles, std::uint32_t* out, int places, int words,
                       std::size_t count, cudaStream_t stream) {
    const int line = static_cast<int>(up_to_4(places));
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>((line + kThreads - 1) / kThreads),
                      static_cast<unsigned>(words), static_cast<unsigned>(count));
    shape.block = dim3(kThreads);
    device::launch("deep_gemm pack tiles", pack_tiles, shape, stream,
                   static_cast<const std::uint32_t*>(tiles), out, places, line);
}

void launch_pack(const Packing& packing, std::size_t count, cudaStream_t stream) {
    device::Launch shape;
    shape.grid = dim3(static_cast<unsigned>((packing.line + kThreads - 1) / kThreads),
                      static_cast<unsigned>(packing.words), static_cast<unsigned>(count));
    shape.block = dim3(kThreads);
    device::launch("deep_gemm pack scales", pack, shape, stream, packing);
}

}  // namespace

PackedWords packed_words(const Problem& problem) {
    const std::size_t deep = words_deep(problem);
    return {rooms(problem) * deep * up_to_4(problem.m),
            static_cast<std::size_t>(problem.groups) * deep * up_to_4(problem.n)};
}

void pack_scales(const Gemm& gemm, std::uint32_t* a, std::uint32_t* b, cudaStream_t stream) {
    const Problem& problem = gemm.problem;
    Packing rows = {};
    rows.scales = static_cast<const std::uint32_t*>(gemm.a_scales);
    rows.out = a;
    rows.line = static_cast<int>(up_to_4(problem.m));
    rows.places = problem.m;
    rows.deep = problem.k / kBlock;
    rows.words = words_deep(problem);
    rows.room_stride = static_cast<std::size_t>(rows.deep) * rows.line;
    rows.deep_stride = rows.line;
    rows.place_stride = 1;
    rows.places_per_scale = 1;
    launch_pack(rows, rooms(problem), stream);

    Packing columns = rows;
    columns.scales = static_cast<const std::uint32_t*>(gemm.b_scales);
    columns.out = b;
    columns.line = static_cast<int>(up_to_4(problem.n));
    columns.places = problem.n;
    columns.room_stride =
        static_cast<std::size_t>((problem.n + kBlock - 1) / kBlock) * columns.deep;
    columns.deep_stride = 1;
    columns.place_stride = columns.deep;
    columns.places_per_scale = kBlock;
    launch_pack(columns, static_cast<std::size_t>(problem.groups), stream);
}

void pack_tiled_scales(const Gemm& gemm, std::uint32_t* a, std::uint32_t* b, cudaStream_t stream) {
    const Problem& problem = gemm.problem;
    const int words = words_deep(problem);
    launch_pack_tiles(gemm.a_scales, a, problem.m, words, rooms(problem), stream);
    launch_pack_tiles(gemm.b_scales, b, problem.n, words, problem.groups, stream);
}

}  // namespace deep_gemm_baseline
