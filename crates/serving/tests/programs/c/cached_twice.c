/* Frees a block twice that its thread has kept. */
#include "check.h"

int main(void) {
    char *blocks[2];
    turn_over();
    for (int i = 0; i < 2; i++) blocks[i] = memset(malloc(40 * KIB), 1, 40 * KIB);
    for (int i = 0; i < 2; i++) free(HIDE(blocks[i]));
    free(HIDE(blocks[0]));
    return 0;
}
