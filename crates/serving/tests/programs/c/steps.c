/* Steps that repeat, closed by the program where it is told to: an argument closes them. */
#include "check.h"
#include "lowtide.h"

int main(int count, char **arguments) {
    (void)arguments;
    CHECK(lowtide_step && lowtide_mark);
    lowtide_mark("steps begin");
    for (int step = 0; step < 30; step++) {
        char *blocks[20];
        for (int i = 0; i < 20; i++) {
            size_t bytes = 100 * KIB * (size_t)(1 + i % 5);
            blocks[i] = memset(malloc(bytes), 1, bytes);
        }
        for (int i = 0; i < 20; i++) free(HIDE(blocks[i]));
        if (count > 1) lowtide_step();
    }
    return 0;
}
