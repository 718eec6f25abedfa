/* Frees a block twice that its thread has kept; with an argument, when the thread keeps as much as it may: the "first" of many, which it keeps, or the
   "last", which it does not. */
#include "check.h"

#define BLOCKS 100

int main(int count, char **arguments) {
    char *blocks[BLOCKS];
    int freed = count > 1 ? BLOCKS : 2;
    turn_over();
    for (int i = 0; i < freed; i++) CHECK((blocks[i] = malloc(40 * KIB)));
    for (int i = 0; i < freed; i++) blocks[i][0] = 1;
    for (int i = 0; i < freed; i++) free(HIDE(blocks[i]));
    free(HIDE(blocks[count > 1 && strcmp(arguments[1], "last") == 0 ? freed - 1 : 0]));
    return 0;
}
