#include "Kernels/baselines/flash_attention/archives.h"

namespace flash_attention {

#ifdef CUTE_KERNELS_flash_attention_4_sm_90a
#define ARCHIVE sm_90a
#define ARCHIVE_TABLE "flash_attention_4/sm_90a.inc"
#define ARCHIVE_ARTIFACT "flash_attention_4/sm_90a.artifact.inc"
#include "Kernels/baselines/cute/archive.inc"
#endif

#ifdef CUTE_KERNELS_flash_attention_4_sm_100a
#define ARCHIVE sm_100a
#define ARCHIVE_TABLE "flash_attention_4/sm_100a.inc"
#define ARCHIVE_ARTIFACT "flash_attention_4/sm_100a.artifact.inc"
#include "Kernels/baselines/cute/archive.inc"
#endif

#ifdef CUTE_KERNELS_flash_attention_4_compute_90a
#define ARCHIVE compute_90a
#define ARCHIVE_TABLE "flash_attention_4/compute_90a.inc"
#define ARCHIVE_PTX "flash_attention_4/compute_90a.ptx.inc"
#define ARCHIVE_ARTIFACT "flash_attention_4/compute_90a.artifact.inc"
#include "Kernels/baselines/cute/archive.inc"
#endif

#ifdef CUTE_KERNELS_flash_attention_4_compute_100a
#define ARCHIVE compute_100a
#define ARCHIVE_TABLE "flash_attention_4/compute_100a.inc"
#define ARCHIVE_PTX "flash_attention_4/compute_100a.ptx.inc"
#define ARCHIVE_ARTIFACT "flash_attention_4/compute_100a.artifact.inc"
#include "Kernels/baselines/cute/archive.inc"
#endif

const cute_kernels::Archive& archive(int major) {
#ifdef CUTE_KERNELS_flash_attention_4_sm_90a
    if (major == 9) return sm_90a();
#endif
#ifdef CUTE_KERNELS_flash_attention_4_sm_100a
    if (major == 10) return sm_100a();
#endif
#ifdef CUTE_KERNELS_flash_attention_4_compute_90a
    if (major == 9) return compute_90a();
#endif
#ifdef CUTE_KERNELS_flash_attention_4_compute_100a
    if (major == 10) return compute_100a();
#endif
    static const cute_kernels::Archive none;
    return none;
}

}  // namespace flash_attention
