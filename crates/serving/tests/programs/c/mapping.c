/* In a control group with little memory: frees most of it, and then maps nearly as much itself. */
#include "check.h"
#include <sys/mman.h>

int main(int count, char **arguments) {
    CHECK(count > 1);
    for (int round = 0; round < atoi(arguments[1]); round++) {
        char *blocks[50];
        for (int i = 0; i < 50; i++) blocks[i] = memset(malloc(4 * MIB), 1, 4 * MIB);
        for (int i = 0; i < 50; i++) free(HIDE(blocks[i]));
    }
    char *mapped = mmap(NULL, 180 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    memset(mapped, 1, 180 * MIB);
    return 0;
}
