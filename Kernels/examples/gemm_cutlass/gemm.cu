// A GEMM on Hopper with CUTLASS, to start from: out[m, n] = sum over k of a[m, k] * b[n, k], bf16.
//
//     git clone --depth 1 https://github.com/NVIDIA/cutlass
//     nvcc -O3 -DNDEBUG -std=c++17 -gencode arch=compute_90a,code=sm_90a --expt-relaxed-constexpr
//         -Icutlass/include -shared -Xcompiler -fPIC -o libgemm.so gemm.cu
#include <cutlass/gemm/device/gemm_universal_adapter.h>

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "contender.h"

namespace {

using namespace cute;

// What is worth changing first.
using Tile = Shape<_128, _128, _64>;
using Cluster = Shape<_2, _1, _1>;
using MainloopSchedule = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
using EpilogueSchedule = cutlass::epilogue::TmaWarpSpecialized;

using Element = cutlass::bfloat16_t;
using RowMajor = cutlass::layout::RowMajor;
// As k by n, which is how CUTLASS sees it: the rows of b are contiguous.
using ColumnMajor = cutlass::layout::ColumnMajor;
// What TMA wants to be aligned to 16 bytes.
constexpr int kAlignment = 16 / sizeof(Element);

using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, RowMajor, kAlignment,
    Element, RowMajor, kAlignment, EpilogueSchedule>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, RowMajor, kAlignment, Element,
    ColumnMajor, kAlignment, float, Tile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
        sizeof(typename Epilogue::SharedStorage))>,
    MainloopSchedule>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

// nullptr if it can do it, otherwise why not.
const char* Supports(const contender_problem* problem) {
    if (problem->device != CONTENDER_CUDA) return "runs on CUDA only";
    if (!contender_same(problem->arch, "sm_90a")) return "runs on sm_90a only";
    if (!contender_same(problem->dtype, "bf16")) return "bf16 only";
    for (const char* name : {"n", "k"}) {
        double size = contender_number(problem, name, 0);
        if (static_cast<int>(size) % kAlignment != 0) return "n and k must be multiples of 8";
    }
    return nullptr;
}

// Everything that need not be timed.
void* Bind(const contender_problem* problem, char* error, size_t error_bytes) {
    const contender_tensor* a = contender_find(problem, "a");
    const contender_tensor* b = contender_find(problem, "b");
    const contender_tensor* out = contender_find(problem, "out");
    int m = static_cast<int>(out->shape[0]);
    int n = static_cast<int>(out->shape[1]);
    int k = static_cast<int>(a->shape[1]);
    // Of matrices whose rows are contiguous; there is one of each.
    auto stride = [](int columns) { return Stride<int64_t, _1, int64_t>{columns, {}, 0}; };
    cutlass::KernelHardwareInfo hardware;
    hardware.sm_count = problem->multiprocessors;
    typename Gemm::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k, 1},
        {static_cast<const Element*>(a->address), stride(k),
         static_cast<const Element*>(b->address), stride(k)},
        {{1.0f, 0.0f}, nullptr, stride(n), static_cast<Element*>(out->address), stride(n)},
        hardware};
    if (Gemm::get_workspace_size(arguments) != 0) {
        return contender_refuse(error, error_bytes, "this schedule needs a workspace: allocate it");
    }
    auto gemm = new Gemm;
    cutlass::Status status = Gemm::can_implement(arguments);
    if (status == cutlass::Status::kSuccess) status = gemm->initialize(arguments);
    if (status == cutlass::Status::kSuccess) return gemm;
    delete gemm;
    return contender_refuse(error, error_bytes, cutlassGetStatusString(status));
}

// The work: this is timed.
int32_t Enqueue(void* handle, void* stream) {
    return static_cast<int32_t>(static_cast<Gemm*>(handle)->run(static_cast<cudaStream_t>(stream)));
}

void Destroy(void* handle) { delete static_cast<Gemm*>(handle); }

const char* const kOps[] = {"gemm", nullptr};

}  // namespace

const contender_description* contender_library() {
    static const contender_description library = {
        CONTENDER_ABI_VERSION,
        sizeof(contender_description),
        "gemm in CUTLASS",
        "1",
        kOps,
        Supports,
        Bind,
        Enqueue,
        nullptr,
        Destroy,
    };
    return &library;
}
