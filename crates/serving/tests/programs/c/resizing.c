/* Blocks that grow and shrink by realloc in one way, and the page faults that this took. */
#include "check.h"
#include <sys/resource.h>

enum { MOST = 32 };

static void touch(char *block, size_t from, size_t to) {
    for (size_t at = from; at < to; at += 4 * KIB) block[at] = 1;
    block[to - 1] = 1;
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* `percent` of what a block has come to it each time, and `bytes`; with a neighbour, each moves to grow. */
static void turn(int blocks, size_t from, size_t to, size_t percent, size_t bytes, int neighbour, int shrinks) {
    char *all[MOST], *others[MOST];
    for (int i = 0; i < blocks; i++) {
        touch(all[i] = malloc(from), 0, from);
        others[i] = neighbour ? malloc(MIB) : NULL;
    }
    size_t now = from;
    while (now < to) {
        size_t next = now + now / 100 * percent + bytes;
        for (int i = 0; i < blocks; i++) {
            all[i] = realloc(all[i], next);
            CHECK(all[i] && all[i][now - 1] == 1);
            touch(all[i], now, next);
        }
        now = next;
    }
    for (; shrinks && now > from; now /= 2)
        for (int i = 0; i < blocks; i++) CHECK(all[i] = realloc(all[i], now / 2));
    for (int i = 0; i < blocks; i++) {
        free(all[i]);
        free(others[i]);
    }
}

int main(int count, char **arguments) {
    CHECK(count > 1);
    const char *way = arguments[1];
    char *warm[40];
    for (int i = 0; i < 40; i++) touch(warm[i] = malloc(MIB), 0, MIB);
    for (int i = 0; i < 40; i++) free(warm[i]);
    long before = faults();
    for (int round = 0; round < 3; round++) {
        if (strcmp(way, "by half") == 0) turn(1, MIB, 256 * MIB, 50, 0, 0, 0);
        if (strcmp(way, "doubling") == 0) turn(1, MIB, 256 * MIB, 100, 0, 0, 0);
        if (strcmp(way, "by 1 MiB") == 0) turn(1, MIB, 128 * MIB, 0, MIB, 0, 0);
        if (strcmp(way, "in turn") == 0) turn(8, 64 * KIB, 32 * MIB, 50, 0, 0, 0);
        if (strcmp(way, "up to 1 MiB") == 0) turn(32, 32 * KIB, MIB, 30, 0, 0, 0);
        if (strcmp(way, "having to move") == 0) turn(1, 256 * MIB, 257 * MIB, 1, 0, 1, 0);
        if (strcmp(way, "in small parts") == 0) turn(4, 64 * KIB, 8 * MIB, 0, 64 * KIB, 0, 0);
        if (strcmp(way, "and shrinking") == 0) turn(4, 64 * KIB, 64 * MIB, 50, 0, 0, 1);
    }
    printf("%ld\n", faults() - before);
    return 0;
}
