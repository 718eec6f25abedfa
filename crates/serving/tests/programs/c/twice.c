/* Frees a block twice. */
#include "check.h"

int main(void) {
    void *kept = malloc(5 * MIB), *block = malloc(100 * KIB);
    sink = kept;
    free(HIDE(block));
    free(HIDE(block));
    return 0;
}
