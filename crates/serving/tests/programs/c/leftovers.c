/* Blocks from before the arena that are freed when it serves: nobody needs their pages any more. */
#include "check.h"
#include "lowtide.h"

#define BLOCKS 1000
#define SIZE (100 * KIB)

static char *blocks[BLOCKS], *pins[BLOCKS];

int main(void) {
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        pins[i] = malloc(64);
        CHECK(blocks[i] && pins[i]);
        memset(blocks[i], i, SIZE);
        memset(pins[i], i, 64);
    }
    CHECK(lowtide_expect_steps != NULL);
    lowtide_expect_steps();
    for (int i = 0; i < 4; i++) {
        char *served = HIDE(malloc(8 * MIB));
        served[0] = 1;
        free(served);
    }
    size_t before = resident();
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(blocks[i][0] == (char)i && blocks[i][SIZE - 1] == (char)i);
        free(blocks[i]);
    }
    size_t after = resident();
    CHECK(before > after + BLOCKS * SIZE * 9 / 10);
    /* glibc goes on with what it has. */
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(pins[i][0] == (char)i && pins[i][63] == (char)i);
        char *small = malloc(20 * KIB);
        CHECK(small);
        memset(small, 3, 20 * KIB);
        blocks[i] = small;
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
        free(pins[i]);
    }
    return 0;
}
