/* Linked with an allocator of its own, some of whose functions have no namesake. */
#include "check.h"

extern void *wrapper_take(size_t);

int main(void) {
    void *block = wrapper_take(100);
    CHECK(block != NULL);
    CHECK(malloc_usable_size(block) >= 100);
    block = realloc(block, 200 * KIB);
    CHECK(block != NULL);
    free(block);
    free(wrapper_take(MIB));
    for (int round = 0; round < 64; round++) {
        char *large = malloc(MIB);
        CHECK(large != NULL);
        memset(large, round, MIB);
        free(HIDE(large));
    }
    return 0;
}
