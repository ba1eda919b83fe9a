/* A library that describes itself wrongly, in the way that a definition names. */
#include "contender.h"

static void* bind_nothing(const contender_problem* problem, char* error, size_t error_bytes) {
    (void)problem;
    return contender_refuse(error, error_bytes, "nothing is right here");
}

static int32_t enqueue(void* handle, void* stream) {
    (void)handle;
    (void)stream;
    return 0;
}

static contender_description library = {
    CONTENDER_ABI_VERSION,
    sizeof(contender_description),
    "broken",
    "1",
    NULL,
    NULL,
    bind_nothing,
    enqueue,
    NULL,
    NULL,
};

#ifdef NO_SYMBOL
const contender_description* another_name(void) { return &library; }
#else
const contender_description* contender_library(void) {
#if defined(WRONG_VERSION)
    library.abi_version = 7;
#elif defined(SHORT)
    library.struct_bytes = 16;
#elif defined(NO_ENQUEUE)
    library.enqueue = NULL;
#elif defined(NO_DESCRIPTION)
    return NULL;
#elif defined(OTHER_OPS)
    static const char* const ops[] = {"gemm", "rmsnorm_fwd", NULL};
    library.ops = ops;
#elif defined(CRASHES_LOADED)
    __builtin_trap();
#endif
    return &library;
}
#endif
