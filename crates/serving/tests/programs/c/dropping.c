/* Steps that a plan serves, and then less load: memory is back within a second of asking, in the middle of a step as well. */
#include "check.h"
#include "lowtide.h"

enum { BLOCKS = 40 };
static char *blocks[BLOCKS];

static void begin(int seed) {
    for (int i = 0; i < BLOCKS; i++) {
        size_t bytes = MIB + 500 * KIB * (size_t)(i % 5);
        blocks[i] = malloc(bytes);
        memset(blocks[i], seed + i, bytes);
    }
}

static void end(int from) {
    for (int i = from; i < BLOCKS; i++) free(HIDE(blocks[i]));
}

static size_t trimmed(void) {
    double start = seconds();
    CHECK(malloc_trim(0) == 1 && seconds() - start < 1);
    return resident();
}

int main(void) {
    CHECK(lowtide_step != NULL);
    size_t before = resident();
    for (int step = 0; step < 30; step++) {
        begin(step);
        end(0);
        lowtide_step();
    }
    begin(30);
    CHECK(resident() > before + 75 * MIB);
    end(4);
    CHECK(trimmed() < before + 24 * MIB);
    for (int i = 0; i < 4; i++) {
        CHECK(blocks[i][0] == (char)(30 + i) && blocks[i][MIB - 1] == (char)(30 + i));
        free(HIDE(blocks[i]));
    }
    CHECK(trimmed() < before + 12 * MIB);
    lowtide_step();
    for (int step = 0; step < 30; step++) {
        begin(step);
        end(0);
        lowtide_step();
    }
    CHECK(resident() > before + 75 * MIB);
    CHECK(trimmed() < before + 12 * MIB);
    return 0;
}
