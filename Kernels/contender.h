/* contender.h: race your own kernel in Head-to-Head, from a shared library in any language that has
 * C functions.
 *
 * Export one function, contender_library(), which returns a description of the library. C11 and
 * C++17; needs nothing but this file.
 *
 *     cc -O3 -shared -fPIC -o libmine.so mine.c
 *     bench_norms --op rmsnorm_fwd --contender ./libmine.so
 *
 * The order of calls, all from one thread; on a CPU in a process of the library's own:
 *
 *     contender_library()           once, after loading
 *     supports(problem)             once per problem; tensors have no addresses yet
 *     bind(problem, ...)            once per set of buffers: plan and allocate here, untimed
 *     enqueue(handle, stream)       many times, and timed
 *     facts(handle)                 once, for the first set
 *     destroy(handle)               once per handle
 *
 * An operation that the harness does not know needs an oracle too: see contender_oracle() below.
 *
 * Everything that the harness passes stays valid until the call returns, tensors and their
 * addresses until the handle is destroyed. Everything that the library returns must stay valid
 * until its next call. Text is UTF-8. Do not let exceptions or panics out of a function: they end
 * the process, and the row says so. */
#ifndef HEAD_TO_HEAD_CONTENDER_H
#define HEAD_TO_HEAD_CONTENDER_H

#include <stddef.h>
#include <stdint.h>

/* What this header describes. A library that says another version is refused. Within a version,
 * fields are only added at the end of a structure, whose `struct_bytes` then grows. */
#define CONTENDER_ABI_VERSION 1u

#ifdef __cplusplus
extern "C" {
#endif

/* How a tensor may be accessed. */
enum {
    CONTENDER_INPUT = 0,  /* read only: changing it fails the check */
    CONTENDER_OUTPUT = 1, /* written completely; holds anything before */
    CONTENDER_IN_OUT = 2  /* read, then overwritten in place */
};

/* Element types, little-endian. */
enum {
    CONTENDER_F32 = 0,
    CONTENDER_F16 = 1,
    CONTENDER_BF16 = 2,
    CONTENDER_FP8_E4M3 = 3, /* no infinity, largest finite value 448 */
    CONTENDER_E8M0 = 4,     /* a power of two: a block scale */
    CONTENDER_I32 = 5,
    CONTENDER_I64 = 6,
    CONTENDER_MXFP8 = 7,  /* e4m3 elements; E8M0 scales, one per 32, in a tensor of their own */
    CONTENDER_NVFP4 = 8,  /* two e2m1 elements per byte, the first in the low bits; e4m3 scales */
    CONTENDER_F64 = 9,    /* only for oracles: contenders never see it */
    CONTENDER_MXFP4 = 10, /* pairs as in NVFP4; E8M0 scales, one per 32 */
    CONTENDER_FP8_UE8M0 = 11 /* as MXFP8, one scale per 128 */
};

/* What addresses point to. */
enum {
    CONTENDER_CPU = 0, /* host memory; `stream` is NULL and the work is done when enqueue returns */
    CONTENDER_CUDA = 1 /* device memory; `stream` is a CUstream */
};

typedef struct contender_tensor {
    const char* name;
    int32_t role;
    int32_t dtype;
    int64_t rank;
    const int64_t* shape;
    const int64_t* strides; /* in elements */
    uint64_t bytes;
    void* address; /* NULL in supports() */
} contender_tensor;

/* A number or a text that defines the problem, such as m = 4096, or epsilon = "0.000001". */
typedef struct contender_axis {
    const char* name;
    const char* text; /* as in JSON, but a string without its quotes */
    double number;    /* NaN if the text is not a number */
} contender_axis;

typedef struct contender_problem {
    uint32_t struct_bytes; /* sizeof(contender_problem) where the harness was compiled */
    uint32_t abi_version;
    const char* op;    /* rmsnorm_fwd, gemm, ...; `bench --list` has them */
    const char* dtype; /* the type that names the problem: f32, bf16, fp8_e4m3, mxfp8, ... */
    const contender_axis* axes;
    uint64_t axis_count;
    const contender_tensor* tensors;
    uint64_t tensor_count;
    int32_t device;
    int32_t multiprocessors; /* or CPU cores */
    const char* arch;        /* as nvcc names it; x86_64, ... */
    const char* options;     /* what follows the ? in --contender name=./lib.so?options, else "" */
    const char* json;        /* all of the above in one object */
} contender_problem;

typedef struct contender_description {
    uint32_t abi_version;  /* CONTENDER_ABI_VERSION */
    uint32_t struct_bytes; /* sizeof(contender_description) */
    const char* name;      /* who it is, for the row's facts */
    const char* version;   /* "" if it has none */
    /* Operations it answers, ended by NULL; NULL if supports() decides alone. */
    const char* const* ops;

    /* NULL if it solves the problem, otherwise the reason why not, which goes into the row. May be
     * NULL: it then solves everything that is one of its ops. */
    const char* (*supports)(const contender_problem* problem);

    /* Prepares for one set of buffers. Returns a handle, or NULL after writing the reason, ended by
     * 0, to `error`. */
    void* (*bind)(const contender_problem* problem, char* error, size_t error_bytes);

    /* Does the work once. On CUDA asynchronously and on `stream` alone; on the CPU it is done on
     * return. Returns 0, or a code of its own that goes into the row. */
    int32_t (*enqueue)(void* handle, void* stream);

    /* A JSON object of what it chose: tile, kernel, threads. May be NULL, and may return NULL. */
    const char* (*facts)(void* handle);

    /* May be NULL. */
    void (*destroy)(void* handle);
} contender_description;

#if defined(_WIN32)
#define CONTENDER_EXPORT
#else
#define CONTENDER_EXPORT __attribute__((visibility("default")))
#endif

/* The one function that a library exports. */
CONTENDER_EXPORT const contender_description* contender_library(void);

/* An operation that the harness does not know comes with an oracle: a library of its own that
 * exports contender_oracle() and computes the correct answers in f64, on the CPU whatever the
 * device of the contenders is.
 *
 *     cc -O3 -shared -fPIC -o liboracle.so oracle.c -lm
 *     bench_own --problem problem.json --oracle ./liboracle.so --contender ./libmine.so
 *
 * Every tensor that it is given is CONTENDER_F64: inputs hold the numbers that contenders get,
 * already rounded to their types, and outputs take numbers that are not rounded. problem->json
 * has the types that contenders see. */
typedef struct contender_oracle_description {
    uint32_t abi_version;  /* CONTENDER_ABI_VERSION */
    uint32_t struct_bytes; /* sizeof(contender_oracle_description) */
    const char* name;      /* for messages */
    const char* version;   /* "" if it has none */
    /* Operations it answers, ended by NULL; NULL if it answers any. */
    const char* const* ops;

    /* Writes the correct values of one unit to every output, and nothing else: of an output with n
     * elements, unit u is elements u * (n / units) to (u + 1) * (n / units). The problem file says
     * how many units there are; with one, a unit is everything. The harness asks for some of them,
     * in any order, and for some twice. Returns 0, or a code of its own. */
    int32_t (*answer)(const contender_problem* problem, uint64_t unit, uint64_t units);
} contender_oracle_description;

/* The one function that an oracle exports. */
CONTENDER_EXPORT const contender_oracle_description* contender_oracle(void);

/* Whether two texts are equal, so that a library need not include <string.h>. */
static inline int contender_same(const char* left, const char* right) {
    while (*left != 0 && *left == *right) {
        ++left;
        ++right;
    }
    return *left == *right;
}

/* The tensor of that name, or NULL. */
static inline const contender_tensor* contender_find(const contender_problem* problem,
                                                     const char* name) {
    for (uint64_t at = 0; at < problem->tensor_count; ++at) {
        if (contender_same(problem->tensors[at].name, name)) return &problem->tensors[at];
    }
    return NULL;
}

/* The number of that name, or `otherwise`. */
static inline double contender_number(const contender_problem* problem, const char* name,
                                      double otherwise) {
    for (uint64_t at = 0; at < problem->axis_count; ++at) {
        const contender_axis* axis = &problem->axes[at];
        if (contender_same(axis->name, name) && axis->number == axis->number) return axis->number;
    }
    return otherwise;
}

/* Writes a reason where bind() reports it, and returns the NULL that bind() then returns. */
static inline void* contender_refuse(char* error, size_t error_bytes, const char* reason) {
    size_t at = 0;
    for (; reason[at] != 0 && at + 1 < error_bytes; ++at) error[at] = reason[at];
    if (error_bytes > 0) error[at] = 0;
    return NULL;
}

#ifdef __cplusplus
}
#endif

#endif
