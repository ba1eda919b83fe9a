/* Oracles that are right, or fail in the way that their text says, for out[row, i] = 2 * x[row, i]
 * with a running sum of each row in "sum". A unit is a row. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "contender.h"

static int calls = 0;

static int is(const contender_problem* problem, const char* fault) {
    return contender_same(problem->options, fault);
}

static int32_t answer(const contender_problem* problem, uint64_t unit, uint64_t units) {
    const contender_tensor* x = contender_find(problem, "x");
    const contender_tensor* out = contender_find(problem, "out");
    const contender_tensor* sum = contender_find(problem, "sum");
    if (!x || !out || !sum || x->dtype != CONTENDER_F64 || units != (uint64_t)x->shape[0]) return 1;
    if (x->bytes != (uint64_t)(x->shape[0] * x->shape[1]) * 8) return 2;
    ++calls;
    int64_t columns = x->shape[1];
    double* from = (double*)x->address + (int64_t)unit * columns;
    double* to = (double*)out->address + (int64_t)unit * columns;
    double total = 0;
    for (int64_t i = 0; i < columns; ++i) {
        to[i] = 2 * from[i];
        total += from[i];
    }
    ((double*)sum->address)[unit] = total;
    volatile uintptr_t nowhere = 8;
    if (is(problem, "crashes")) *(volatile int*)nowhere = 1;
    if (is(problem, "aborts_later") && unit + 1 == units) abort();
    if (is(problem, "exits")) _exit(0);
    if (is(problem, "hangs")) {
        for (;;) pause();
    }
    if (is(problem, "spins")) {
        for (volatile int spin = 0;; ++spin) continue;
    }
    if (is(problem, "fails")) return 7;
    if (is(problem, "not_a_number")) {
        for (int64_t i = 0; i < columns; ++i) to[i] = NAN;
    }
    if (is(problem, "one_infinity")) to[columns - 1] = INFINITY;
    if (is(problem, "too_long")) {
        double* end = (double*)out->address + x->shape[0] * columns;
        end[0] = 1;
    }
    if (is(problem, "too_early")) ((double*)sum->address)[-1] = 1;
    if (is(problem, "changes_inputs")) from[0] += 1;
    if (is(problem, "counts_calls")) to[0] = calls;
    return 0;
}

/* Writes less than it was asked for: nothing of the second output. */
static int32_t answer_half(const contender_problem* problem, uint64_t unit, uint64_t units) {
    const contender_tensor* sum = contender_find(problem, "sum");
    double before = ((double*)sum->address)[unit];
    int32_t status = answer(problem, unit, units);
    ((double*)sum->address)[unit] = before;
    return status;
}

const contender_oracle_description* contender_oracle(void) {
    static const char* const ops[] = {"doubled", NULL};
    static contender_oracle_description oracle = {
        CONTENDER_ABI_VERSION, sizeof(contender_oracle_description), "zoo", "1", ops, answer,
    };
#if defined(WRONG_VERSION)
    oracle.abi_version = 7;
#elif defined(SHORT)
    oracle.struct_bytes = 12;
#elif defined(NO_ANSWER)
    oracle.answer = NULL;
#elif defined(OTHER_OPS)
    static const char* const others[] = {"tripled", NULL};
    oracle.ops = others;
#elif defined(HALF)
    oracle.answer = answer_half;
#elif defined(NOTHING)
    return NULL;
#endif
    (void)answer_half;
    return &oracle;
}
