/* Has many blocks of which it touches little: what the system gives is what is touched. */
#include "check.h"

int main(int count, char **arguments) {
    size_t size = strtoul(arguments[1], NULL, 10), touched = strtoul(arguments[2], NULL, 10);
    size_t before = resident();
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(size);
        CHECK(block);
        memset(block, 1, touched);
    }
    printf("%zu\n", (resident() - before) / MIB);
    return 0;
}
