// Our forward kernels for norms_torch_compile.py, bf16, behind one C function.
#include <exception>

#include "Kernels/norms/cross_entropy_forward.h"
#include "Kernels/norms/fused_add_rmsnorm.h"
#include "Kernels/norms/layernorm_forward.h"
#include "Kernels/norms/rmsnorm_forward.h"
#include "Kernels/norms/softmax_forward.h"

using namespace norms;

extern "C" int launch_op(int op, void* x, void* weight, void* bias, void* residual, void* targets,
                         void* out, void* loss, void* lse, long long rows, int columns,
                         void* stream_address) {
    constexpr ElementType kType = ElementType::kBf16;
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_address);
    try {
        switch (op) {
            case 0:
                launch(RmsNormForward{x, weight, out, nullptr, rows, columns, kType, kType, 1e-6f},
                       stream);
                return 0;
            case 1:
                launch(SoftmaxForward{x, out, rows, columns, kType}, stream);
                return 0;
            case 2:
                launch(CrossEntropyForward{x, static_cast<std::int64_t*>(targets),
                                           static_cast<float*>(loss), static_cast<float*>(lse),
                                           rows, columns, kType},
                       stream);
                return 0;
            case 3:
                launch(LayerNormForward{x, weight, bias, out, nullptr, nullptr, rows, columns,
                                        kType, kType, 1e-5f},
                       stream);
                return 0;
            case 4:
                launch(FusedAddRmsNorm{x, residual, weight, rows, columns, kType, kType, 1e-6f},
                       stream);
                return 0;
        }
    } catch (const std::exception&) {
    }
    return 1;
}
