/* A block that grows and grows, with others that come in between. */
#include "check.h"

enum { STEPS = 256, OTHERS = 40 };

static size_t mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    return lines;
}

int main(void) {
    for (int i = 0; i < OTHERS; i++) CHECK(HIDE(malloc(2 * MIB)) != NULL);
    unsigned char *block = malloc(MIB);
    CHECK(block != NULL);
    block[0] = 1;
    for (size_t step = 1; step < STEPS; step++) {
        CHECK(HIDE(malloc(MIB)) != NULL);
        block = realloc(block, (step + 1) * MIB);
        CHECK(block != NULL);
        memset(block + step * MIB, (int)(step % 251 + 1), MIB);
        for (size_t seen = 1; seen <= step; seen++) {
            CHECK(block[seen * MIB] == seen % 251 + 1);
            CHECK(block[seen * MIB + MIB - 1] == seen % 251 + 1);
        }
        CHECK(block[0] == 1);
    }
    CHECK(mappings() < 500);
    free(block);
    return 0;
}
