/* What every program needs: a check that names itself, and a few looks at the process. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB 1024UL
#define MIB (1024UL * KIB)

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
            _exit(1);                                                              \
        }                                                                          \
    } while (0)

/* Keeps the compiler from reasoning about blocks; each thread has its own, so that none sees another's block. */
static _Thread_local void *volatile sink;
#define HIDE(pointer) (sink = (pointer), sink)

static inline size_t resident(void) {
    char text[256];
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    CHECK(file && fgets(text, sizeof text, file) && sscanf(text, "%*u %zu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The most that was resident since this program began, in KiB: what getrusage says may be its parent's. */
static inline size_t peak_resident(void) {
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    size_t peak = 0;
    CHECK(file);
    while (fgets(line, sizeof line, file) && sscanf(line, "VmHWM: %zu", &peak) != 1) {}
    fclose(file);
    CHECK(peak > 0);
    return peak;
}

static inline double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline void fill(void *block, size_t bytes, unsigned char seed) {
    unsigned char *byte = block;
    for (size_t at = 0; at < bytes; at += 509) byte[at] = (unsigned char)(seed + at / 509);
    byte[bytes - 1] = seed;
}

/* The first `bytes` of a block that was filled with at least so many. */
static inline int holds(const void *block, size_t bytes, unsigned char seed) {
    const unsigned char *byte = block;
    for (size_t at = 0; at + 509 < bytes; at += 509)
        if (byte[at] != (unsigned char)(seed + at / 509)) return 0;
    return 1;
}

static inline int is_zero(const void *block, size_t bytes) {
    const unsigned char *byte = block;
    return bytes == 0 || (byte[0] == 0 && memcmp(byte, byte + 1, bytes - 1) == 0);
}

/* Frees so many large blocks, of which little is touched, that its next ones come from slabs where there is no arena. */
static inline void turn_over(void) {
    for (size_t i = 0; i < 8000; i++) {
        char *volatile block = malloc(40 * KIB + i % 100 * 256);
        CHECK(block);
        block[0] = 1;
        free(block);
    }
}

/* A program that is asked to by `TURNS_OVER` does so before anything else. */
__attribute__((constructor)) static void begins(void) {
    if (getenv("TURNS_OVER")) turn_over();
}
