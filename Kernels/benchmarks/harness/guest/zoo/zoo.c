/* Libraries that misbehave, each in one way, which the text after the ? names: y[row, column] =
 * x[row, column] * w[column] in f32. What would be an escape is tried once, when the library is
 * bound, and ends it with a reason if it works: a row without fault is then the proof that it did
 * not. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asm/sockios.h>

#include "contender.h"

/* More calls than the gate makes before a contender is timed. */
#define GATE_CALLS 6

typedef struct {
    const float* x;
    const float* w;
    float* y;
    long rows, columns;
    const char* fault;
    int set;
    float* kept;
    float* kept_inputs;
    pthread_t thread;
    atomic_int wanted;
} work;

static int calls, sets;
static char facts_text[9000];

static int is(const work* it, const char* fault) { return contender_same(it->fault, fault); }

static void rows(const work* it, long first, long end, float* to) {
    for (long row = first; row < end; ++row)
        for (long column = 0; column < it->columns; ++column)
            to[row * it->columns + column] = it->x[row * it->columns + column] * it->w[column];
}

static void honest(const work* it) { rows(it, 0, it->rows, it->y); }

/* A thread that does the work after the call has ended. */
static void* later(void* argument) {
    work* it = argument;
    for (;;) {
        while (!atomic_load(&it->wanted)) {
        }
        honest(it);
        atomic_store(&it->wanted, 0);
    }
    return NULL;
}

/* A thread that works whenever it can. */
static void* always(void* argument) {
    work* it = argument;
    for (;;) rows(it, 0, it->rows, it->kept);
    return NULL;
}

/* What it has been bound to, for those who answer before they are called. */
static work* bound[64];

/* On one of so many threads; all of them together keep the owner from its core. */
enum { CROWD = 4 };
static atomic_int epoch, answered;

static void* crowd(void* argument) {
    long own = (long)(intptr_t)argument;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (int last = 0;;) {
        while (atomic_load(&epoch) == last) sched_yield();
        last = atomic_load(&epoch);
        for (int set = 0; set < sets; ++set) {
            const work* it = bound[set];
            for (int turn = 0; turn < 400; ++turn)
                rows(it, own * it->rows / CROWD, (own + 1) * it->rows / CROWD, it->kept);
        }
        atomic_fetch_add(&answered, 1);
    }
    return NULL;
}

/* Runs whenever the process is woken, before it is called. */
static void on_waking(int signal) {
    (void)signal;
    for (int set = 0; set < sets; ++set) {
        const work* it = bound[set];
        if (is(it, "works_on_waking"))
            for (int turn = 0; turn < 10; ++turn) rows(it, 0, it->rows, it->y);
    }
    if (sets && is(bound[0], "crowds_out_owner")) {
        atomic_store(&answered, 0);
        atomic_fetch_add(&epoch, 1);
        while (atomic_load(&answered) < CROWD) sched_yield();
    }
}

static int opens(const char* path, int flags) {
    int file = open(path, flags, 0600);
    if (file >= 0) close(file);
    return file >= 0;
}

/* NULL if it failed, as it should. */
static const char* escapes(const char* attempt) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)getppid());
    if (contender_same(attempt, "reads_files"))
        return opens("/etc/passwd", O_RDONLY) || opens("/proc/version", O_RDONLY) ? "it read a file"
                                                                                  : NULL;
    if (contender_same(attempt, "lists_folders"))
        return opendir(".") || opendir("/") ? "it listed a folder" : NULL;
    if (contender_same(attempt, "writes_files"))
        return opens("stolen", O_WRONLY | O_CREAT) || opens("/tmp/stolen", O_WRONLY | O_CREAT)
                   ? "it wrote a file"
                   : NULL;
    if (contender_same(attempt, "reads_owner"))
        return opens(path, O_RDONLY) ? "it opened its owner's memory" : NULL;
    if (contender_same(attempt, "kills_owner"))
        return kill(getppid(), 0) == 0 ? "it may signal its owner" : NULL;
    if (contender_same(attempt, "signals_owner")) {
        int to_owner = getppid();
        struct f_owner_ex exactly = {F_OWNER_PID, to_owner};
        return fcntl(0, F_SETOWN, to_owner) == 0 || fcntl(0, F_SETOWN_EX, &exactly) == 0 ||
                       fcntl(0, F_SETSIG, SIGKILL) == 0 || ioctl(0, FIOSETOWN, &to_owner) == 0 ||
                       ioctl(0, SIOCSPGRP, &to_owner) == 0
                   ? "it may have signals sent to its owner"
                   : NULL;
    }
    if (contender_same(attempt, "forks")) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        return child > 0 ? "it made a process" : NULL;
    }
    if (contender_same(attempt, "executes")) {
        execl("/bin/true", "true", (char*)NULL);
        return NULL;
    }
    if (contender_same(attempt, "connects"))
        return socket(AF_INET, SOCK_STREAM, 0) >= 0 ? "it has a socket" : NULL;
    if (contender_same(attempt, "leaves_group")) return setsid() > 0 ? "it left its group" : NULL;
    if (contender_same(attempt, "outlives_owner"))
        return prctl(PR_SET_PDEATHSIG, 0) == 0 ? "it would outlive its owner" : NULL;
    if (contender_same(attempt, "raises_limits")) {
        struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
        return setrlimit(RLIMIT_DATA, &all) == 0 ? "it raised its limit" : NULL;
    }
    if (contender_same(attempt, "takes_memory")) {
        size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 2;
        return malloc(bytes) ? "it got half of the machine's memory" : NULL;
    }
    if (contender_same(attempt, "has_descriptors")) {
        for (int file = 3; file < 64; ++file)
            if (fcntl(file, F_GETFD) >= 0) return "it inherited a descriptor";
        return NULL;
    }
    if (contender_same(attempt, "has_environment"))
        return getenv("PATH") || getenv("HOME") ? "it has the environment" : NULL;
    return NULL;
}

static void* bind_to(const contender_problem* problem, char* error, size_t error_bytes) {
    const contender_tensor *x = contender_find(problem, "x"), *w = contender_find(problem, "w"),
                           *y = contender_find(problem, "y");
    if (!x || !w || !y) return contender_refuse(error, error_bytes, "no tensor of that name");
    work* it = calloc(1, sizeof *it);
    *it = (work){.x = x->address,
                 .w = w->address,
                 .y = y->address,
                 .rows = x->shape[0],
                 .columns = x->shape[1]};
    it->fault = strdup(problem->options);
    it->set = sets++;
    it->kept = malloc(y->bytes);
    it->kept_inputs = calloc(1, x->bytes);
    const char* escaped = escapes(it->fault);
    if (escaped) return contender_refuse(error, error_bytes, escaped);
    if (is(it, "null_handle"))
        return contender_refuse(error, error_bytes, "it does not feel like it");
    if (is(it, "null_without_reason")) return NULL;
    if (is(it, "missing_tensor"))
        return contender_refuse(error, error_bytes,
                                contender_find(problem, "z") ? "" : "there is no tensor 'z'");
    /* The list is its own copy: whatever it does to it changes nothing for others. */
    if (is(it, "rewrites_tensors"))
        memset((void*)(uintptr_t)problem->tensors, 0, sizeof(contender_tensor));
    if (is(it, "writes_late")) pthread_create(&it->thread, NULL, later, it);
    if (is(it, "never_rests")) pthread_create(&it->thread, NULL, always, it);
    bound[it->set] = it;
    if (is(it, "works_on_waking") || is(it, "crowds_out_owner")) {
        struct sigaction action = {.sa_handler = on_waking, .sa_flags = SA_RESTART};
        sigaction(SIGCONT, &action, NULL);
    }
    if (is(it, "crowds_out_owner") && it->set == 0)
        for (long thread = 0; thread < CROWD; ++thread)
            pthread_create(&it->thread, NULL, crowd, (void*)(intptr_t)thread);
    if (is(it, "precomputed"))
        honest(&(work){
            .x = it->x, .w = it->w, .y = it->kept, .rows = it->rows, .columns = it->columns});
    if (is(it, "crashes_binding")) abort();
    return it;
}

static void slowly(const work* it, float* to) {
    for (int turn = 0; turn < 5000; ++turn) rows(it, 0, it->rows, to);
}

static int32_t enqueue(void* handle, void* stream) {
    work* it = handle;
    size_t bytes = sizeof(float) * (size_t)(it->rows * it->columns);
    int timed = ++calls > GATE_CALLS;
    (void)stream;
    if (is(it, "crashes")) *(volatile int*)(uintptr_t)getpid() = 1;
    if (is(it, "crashes_when_timed") && timed) abort();
    if (is(it, "hangs"))
        for (volatile int on = 1; on;) {
        }
    if (is(it, "exits")) exit(0);
    if (is(it, "fails")) return 7;
    if (is(it, "stops_itself")) raise(SIGSTOP);
    if (is(it, "closes_everything"))
        for (int file = 0; file < 1024; ++file) close(file);
    if (is(it, "prints_megabytes"))
        for (int line = 0; line < 20000; ++line) printf("all work and no play %d\n", line);
    if (is(it, "forges_answers") && write(0, "\20\0\0\0{\"bound\":    77}", 20) != 20) return 1;
    if (is(it, "far_write")) ((volatile float*)it->y)[-(64 << 20)] = 1;
    if (is(it, "drops_pages")) madvise((void*)((uintptr_t)it->x & ~4095ul), 4096, MADV_REMOVE);
    if (is(it, "writes_late")) {
        while (atomic_load(&it->wanted)) {
        }
        atomic_store(&it->wanted, 1);
        return 0;
    }
    if (is(it, "works_on_waking")) return 0;
    if (is(it, "crowds_out_owner")) {
        memcpy(it->y, it->kept, bytes);
        return 0;
    }
    if (is(it, "idle_when_timed") && timed) return 0;
    if (is(it, "every_third_call") && timed && calls % 3) return 0;
    if (is(it, "only_first_set") && it->set) return 0;
    if (is(it, "senses_nan") && it->y[0] == it->y[0]) return 0;
    if (is(it, "senses_garbage") && it->y[0] != it->y[0]) return 0;
    if (is(it, "cached_output") || is(it, "precomputed")) {
        if (calls == 1 && !is(it, "precomputed")) rows(it, 0, it->rows, it->kept);
        memcpy(it->y, it->kept, bytes);
        return 0;
    }
    if (is(it, "previous_answer")) {
        float* now = malloc(bytes);
        rows(it, 0, it->rows, now);
        memcpy(it->y, calls == 1 ? now : it->kept, bytes);
        memcpy(it->kept, now, bytes);
        free(now);
        return 0;
    }
    if (is(it, "memoises")) {
        if (memcmp(it->kept_inputs, it->x, bytes) != 0) {
            slowly(it, it->kept);
            memcpy(it->kept_inputs, it->x, bytes);
        }
        memcpy(it->y, it->kept, bytes);
        return 0;
    }
    honest(it);
    if (is(it, "wrong_result")) it->y[(it->rows - 1) * it->columns] += 1;
    if (is(it, "not_a_number")) it->y[it->columns] = NAN;
    if (is(it, "right_ends"))
        memset(it->y + it->columns, 0, bytes - 2 * sizeof(float) * (size_t)it->columns);
    if (is(it, "out_of_bounds")) it->y[it->rows * it->columns] = 1;
    if (is(it, "input_mutation")) ((float*)(uintptr_t)it->x)[0] = 1;
    if (is(it, "half_when_timed") && timed)
        memset(it->y + it->rows / 2 * it->columns, 0xff, bytes / 2);
    if (is(it, "low_precision_tail"))
        for (long at = it->rows / 2 * it->columns; at < it->rows * it->columns; ++at) {
            uint32_t bits;
            memcpy(&bits, it->y + at, 4);
            bits &= 0xffff0000u;
            memcpy(it->y + at, &bits, 4);
        }
    return 0;
}

static const char* facts(void* handle) {
    work* it = handle;
    if (is(it, "lies"))
        return "{\"isolation\": [\"perfect\"], \"plan_us\": -1e9, \"planned_ahead\": true}";
    if (is(it, "long_facts")) {
        memset(facts_text, 'x', sizeof facts_text - 1);
        return facts_text;
    }
    if (is(it, "nonsense_facts")) return "[1, 2";
    return "{\"threads\": 1}";
}

static const char* supports(const contender_problem* problem) {
    if (contender_same(problem->options, "crashes_asked")) abort();
    return contender_same(problem->options, "refuses") ? "odd sizes" : NULL;
}

static void destroy(void* handle) {
    work* it = handle;
    if (is(it, "crashes_destroyed")) abort();
}

static const char* const ops[] = {"scaled", NULL};

const contender_description* contender_library(void) {
    static const contender_description library = {
        .abi_version = CONTENDER_ABI_VERSION,
        .struct_bytes = sizeof(contender_description),
        .name = "zoo",
        .version = "1",
        .ops = ops,
        .supports = supports,
        .bind = bind_to,
        .enqueue = enqueue,
        .facts = facts,
        .destroy = destroy,
    };
    return &library;
}
