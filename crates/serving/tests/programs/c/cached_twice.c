/* Frees a block twice that its thread has kept; with an argument, when the thread keeps as much as it may. */
#include "check.h"

#define BLOCKS 100

int main(int count, char **arguments) {
    (void)arguments;
    char *blocks[BLOCKS];
    int freed = count > 1 ? BLOCKS : 2;
    turn_over();
    for (int i = 0; i < freed; i++) CHECK((blocks[i] = malloc(40 * KIB)));
    for (int i = 0; i < freed; i++) blocks[i][0] = 1;
    for (int i = 0; i < freed; i++) free(HIDE(blocks[i]));
    free(HIDE(blocks[0]));
    return 0;
}
