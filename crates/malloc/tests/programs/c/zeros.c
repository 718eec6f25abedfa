/* calloc gives zeros after dirty reuse, and pages that nobody touches do not become resident. */
#include "check.h"

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
