/* calloc gives zeros after dirty reuse, and pages that nobody touches do not become resident. */
#include "check.h"
#include <sys/resource.h>

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* What was never touched stays so when it is handed out again; what is used each time stays resident. */
static void again(void) {
    size_t before = resident();
    for (int round = 0; round < 20; round++) {
        char *blocks[] = {calloc(1024, 16 * KIB), calloc(1, 9 * MIB)};
        CHECK(blocks[0][5 * MIB] == 0 && blocks[1][5 * MIB] == 0);
        free(HIDE(blocks[0]));
        free(HIDE(blocks[1]));
    }
    CHECK(resident() < before + 6 * MIB);
    long count = 0;
    for (int round = 0; round < 20; round++) {
        if (round == 5) count = faults();
        char *block = calloc(1, 12 * MIB + 3 * KIB);
        CHECK(is_zero(block, 12 * MIB + 3 * KIB));
        memset(block, round + 1, 12 * MIB + 3 * KIB);
        free(HIDE(block));
    }
    CHECK(faults() - count < 100);
}

int main(void) {
    for (int round = 0; round < 200; round++) {
        size_t bytes = 33 * KIB + (size_t)round * 7919;
        char *dirty = malloc(bytes);
        memset(dirty, 0xff, bytes);
        free(HIDE(dirty));
        char *clean = calloc(1, bytes - (size_t)(round % 3) * KIB);
        CHECK(clean && is_zero(clean, bytes - (size_t)(round % 3) * KIB));
        memset(clean, 0xee, bytes - (size_t)(round % 3) * KIB);
        free(HIDE(clean));
    }

    again();
    size_t before = resident();
    char *sparse[] = {calloc(1, 60 * MIB), calloc(60 * MIB, 1), calloc(1, 2048 * MIB)};
    for (int i = 0; i < 3; i++) {
        CHECK(sparse[i] && sparse[i][30 * MIB] == 0);
        sparse[i][30 * MIB] = 1;
    }
    size_t after = resident();
    CHECK(after < before + 16 * MIB);
    for (int i = 0; i < 3; i++) free(sparse[i]);
    return 0;
}
