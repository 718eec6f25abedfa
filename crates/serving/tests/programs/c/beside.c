/* A thread asks for many zeros, for which memory has to be cleared; another that asks for little meanwhile need not wait. */
#include "check.h"

static _Atomic int over;

static void *ask(void *unused) {
    (void)unused;
    for (int i = 0; i < 40; i++) {
        char *zeros = calloc(1, 31 * MIB);
        CHECK(zeros && zeros[20 * MIB] == 0);
        free(HIDE(zeros));
    }
    over = 1;
    return NULL;
}

int main(void) {
    char *block = malloc(31 * MIB), *behind = malloc(40 * MIB);
    CHECK(block && behind);
    memset(block, 1, 31 * MIB);
    free(HIDE(block));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, ask, NULL) == 0);
    double began = seconds(), waited = 0;
    while (!over) {
        double start = seconds();
        free(HIDE(malloc(64 * KIB)));
        waited += seconds() - start;
        usleep(100);
    }
    CHECK(waited < (seconds() - began) / 3);
    return 0;
}
