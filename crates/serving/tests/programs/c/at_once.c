/* Nothing is kept: what a large block held is the system's as soon as it is freed. */
#include "check.h"

int main(void) {
    char *warm = memset(malloc(64 * MIB), 1, 64 * MIB);
    free(HIDE(warm));
    size_t before = resident();
    char *blocks[50];
    for (int i = 0; i < 50; i++) blocks[i] = memset(malloc(4 * MIB), 1, 4 * MIB);
    CHECK(resident() > before + 180 * MIB);
    for (int i = 0; i < 50; i++) free(HIDE(blocks[i]));
    CHECK(resident() < before + 8 * MIB);
    return 0;
}
