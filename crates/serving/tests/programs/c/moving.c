/* A large block that has to move to grow is never there twice, and what it leaves behind is not resident. */
#include "check.h"

enum { BYTES = 300 };

int main(void) {
    for (int i = 0; i < 10; i++) free(HIDE(memset(malloc(MIB), 1, MIB)));
    size_t before = resident();
    char *block = malloc(BYTES * MIB), *behind = HIDE(malloc(MIB));
    fill(block, BYTES * MIB, 3);
    char *moved = realloc(block, (BYTES + 20) * MIB);
    CHECK(moved && moved != block && holds(moved, BYTES * MIB, 3));
    CHECK(peak_resident() * KIB < before + (BYTES + 60) * MIB);
    CHECK(resident() < before + (BYTES + 20) * MIB);
    char *again = HIDE(calloc(1, 30 * MIB));
    CHECK(is_zero(again, 30 * MIB));
    free(again);
    free(moved);
    free(behind);
    return 0;
}
