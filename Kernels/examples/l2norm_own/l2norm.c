/* out[row, i] = x[row, i] / sqrt(sum(x[row]^2) + epsilon) on the CPU, to start from.
 *
 *     cc -O3 -march=native -shared -fPIC -o libl2norm.so l2norm.c -lm
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contender.h"

typedef struct {
    const contender_tensor *x, *out;
    long rows, columns;
    float epsilon;
    float* row; /* one row of x, as f32 */
} work;

static float load(const contender_tensor* tensor, long at) {
    if (tensor->dtype == CONTENDER_F32) return ((const float*)tensor->address)[at];
    uint32_t bits = (uint32_t)((const uint16_t*)tensor->address)[at] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static void store(const contender_tensor* tensor, long at, float value) {
    if (tensor->dtype == CONTENDER_F32) {
        ((float*)tensor->address)[at] = value;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits += 0x7fff + ((bits >> 16) & 1); /* to the nearest, ties to even */
    ((uint16_t*)tensor->address)[at] = (uint16_t)(bits >> 16);
}

/* NULL if it can do it, otherwise why not. */
static const char* supports(const contender_problem* problem) {
    const contender_tensor* x = contender_find(problem, "x");
    if (problem->device != CONTENDER_CPU) return "runs on the CPU only";
    if (!x || (x->dtype != CONTENDER_F32 && x->dtype != CONTENDER_BF16)) return "f32 and bf16 only";
    return NULL;
}

/* Everything that need not be timed. */
static void* bind_to(const contender_problem* problem, char* error, size_t error_bytes) {
    work* it = malloc(sizeof *it);
    if (!it) return contender_refuse(error, error_bytes, "out of memory");
    it->x = contender_find(problem, "x");
    it->out = contender_find(problem, "out");
    it->rows = it->x->shape[0];
    it->columns = it->x->shape[1];
    it->epsilon = (float)contender_number(problem, "epsilon", 0);
    it->row = malloc(sizeof(float) * (size_t)it->columns);
    if (!it->row) return contender_refuse(error, error_bytes, "out of memory");
    return it;
}

/* The work: this is timed. */
static int32_t enqueue(void* handle, void* stream) {
    work* it = handle;
    (void)stream;
    for (long row = 0; row < it->rows; ++row) {
        long start = row * it->columns;
        float sums[8] = {0};
        for (long i = 0; i < it->columns; ++i) {
            it->row[i] = load(it->x, start + i);
            sums[i % 8] += it->row[i] * it->row[i];
        }
        float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                    ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        float scale = 1.0f / sqrtf(sum + it->epsilon);
        for (long i = 0; i < it->columns; ++i) store(it->out, start + i, it->row[i] * scale);
    }
    return 0;
}

static void destroy(void* handle) {
    work* it = handle;
    free(it->row);
    free(it);
}

static const char* const ops[] = {"l2norm", NULL};

const contender_description* contender_library(void) {
    static const contender_description library = {
        .abi_version = CONTENDER_ABI_VERSION,
        .struct_bytes = sizeof(contender_description),
        .name = "l2norm in C",
        .version = "1",
        .ops = ops,
        .supports = supports,
        .bind = bind_to,
        .enqueue = enqueue,
        .destroy = destroy,
    };
    return &library;
}
