/* A library that takes its time to be opened, and then allocates: the loader's lock is held all the while. */
#include "check.h"

__attribute__((constructor)) static void begin(void) {
    usleep(300000);
    free(HIDE(memset(malloc(MIB), 1, MIB)));
}
