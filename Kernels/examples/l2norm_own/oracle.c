/* What is correct, in f64: out[row, i] = x[row, i] / sqrt(sum(x[row]^2) + epsilon). A unit is a
 * row.
 *
 *     cc -O3 -shared -fPIC -o liboracle.so oracle.c -lm
 */
#include <math.h>

#include "contender.h"

static int32_t answer(const contender_problem* problem, uint64_t unit, uint64_t units) {
    const contender_tensor* x = contender_find(problem, "x");
    const contender_tensor* out = contender_find(problem, "out");
    (void)units;
    if (!x || !out) return 1;
    int64_t columns = x->shape[1];
    const double* from = (const double*)x->address + (int64_t)unit * columns;
    double* to = (double*)out->address + (int64_t)unit * columns;
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += from[i] * from[i];
    double scale = 1 / sqrt(sum + contender_number(problem, "epsilon", 0));
    for (int64_t i = 0; i < columns; ++i) to[i] = from[i] * scale;
    return 0;
}

static const char* const ops[] = {"l2norm", NULL};

const contender_oracle_description* contender_oracle(void) {
    static const contender_oracle_description oracle = {
        .abi_version = CONTENDER_ABI_VERSION,
        .struct_bytes = sizeof(contender_oracle_description),
        .name = "l2norm in f64",
        .version = "1",
        .ops = ops,
        .answer = answer,
    };
    return &oracle;
}
