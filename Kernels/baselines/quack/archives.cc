#include "Kernels/baselines/quack/archives.h"

#include <iterator>

#define CUTE_KERNEL(name, init, load, entry, argument_count) \
    extern "C" void init(void**);                            \
    extern "C" void load(void**);                            \
    extern "C" void entry(void**, std::int32_t);
#ifdef CUTE_KERNELS_quack_sm_90a
#include "quack/sm_90a.inc"
#endif
#ifdef CUTE_KERNELS_quack_sm_100a
#include "quack/sm_100a.inc"
#endif
#undef CUTE_KERNEL

namespace quack {
namespace {

#define CUTE_KERNEL(name, init, load, entry, argument_count) \
    {#name, init, load, entry, argument_count},

#ifdef CUTE_KERNELS_quack_sm_90a
const cute_kernels::Kernel kSm90aKernels[] = {
#include "quack/sm_90a.inc"
};
const cute_kernels::Archive kSm90a = {
#include "quack/sm_90a.artifact.inc"
    , kSm90aKernels, std::size(kSm90aKernels)};
#endif

#ifdef CUTE_KERNELS_quack_sm_100a
const cute_kernels::Kernel kSm100aKernels[] = {
#include "quack/sm_100a.inc"
};
const cute_kernels::Archive kSm100a = {
#include "quack/sm_100a.artifact.inc"
    , kSm100aKernels, std::size(kSm100aKernels)};
#endif

const cute_kernels::Archive kNone;

}  // namespace

const cute_kernels::Archive& archive(int major) {
#ifdef CUTE_KERNELS_quack_sm_90a
    if (major == 9) return kSm90a;
#endif
#ifdef CUTE_KERNELS_quack_sm_100a
    if (major == 10) return kSm100a;
#endif
    return kNone;
}

}  // namespace quack
