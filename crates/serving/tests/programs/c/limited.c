/* Works under a limit of addresses: what does not fit is refused, and the rest is served. */
#include "check.h"
#include <sys/resource.h>

int main(void) {
    for (int round = 0; round < 50; round++) {
        char *block = malloc(5 * MIB);
        CHECK(block);
        fill(block, 5 * MIB, 1);
        block = realloc(block, 9 * MIB);
        CHECK(block && holds(block, 5 * MIB, 1));
        free(block);
    }
    errno = 0;
    CHECK(!HIDE(malloc(4096 * MIB)) && errno == ENOMEM);
    return 0;
}
