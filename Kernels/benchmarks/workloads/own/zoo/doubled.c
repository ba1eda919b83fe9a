/* A contender for the same operation in f32, right or, if its text says so, wrong. */
#include <stdlib.h>

#include "contender.h"

typedef struct {
    const float* x;
    float *out, *sum;
    int64_t rows, columns;
    int wrong;
} work;

static void* bind_to(const contender_problem* problem, char* error, size_t error_bytes) {
    const contender_tensor* x = contender_find(problem, "x");
    work* it = malloc(sizeof *it);
    if (!it || !x) return contender_refuse(error, error_bytes, "no x");
    it->x = x->address;
    it->out = contender_find(problem, "out")->address;
    it->sum = contender_find(problem, "sum")->address;
    it->rows = x->shape[0];
    it->columns = x->shape[1];
    it->wrong = contender_same(problem->options, "wrong_on_outliers");
    return it;
}

static int32_t enqueue(void* handle, void* stream) {
    work* it = handle;
    (void)stream;
    for (int64_t row = 0; row < it->rows; ++row) {
        double sum = 0;
        for (int64_t i = row * it->columns; i < (row + 1) * it->columns; ++i) {
            float x = it->x[i];
            sum += x;
            if (it->wrong && x > 2) x = 2;
            it->out[i] = 2 * x;
        }
        it->sum[row] = (float)sum;
    }
    return 0;
}

const contender_description* contender_library(void) {
    static const contender_description library = {
        .abi_version = CONTENDER_ABI_VERSION,
        .struct_bytes = sizeof(contender_description),
        .name = "doubled",
        .version = "1",
        .bind = bind_to,
        .enqueue = enqueue,
        .destroy = free,
    };
    return &library;
}
