/* A signal handler that allocates and frees, and interrupts whatever the program is in. */
#include "check.h"
#include <sys/time.h>

static void *_Atomic offered;
static _Atomic long handled;

static void handle(int signal) {
    (void)signal;
    int kept = errno;
    char *block = malloc(64 * KIB), *zeros = calloc(1, 100 * KIB);
    if (!block || !zeros || zeros[50 * KIB]) _exit(3);
    memset(block, 1, 64 * KIB);
    memset(zeros, 1, 100 * KIB);
    block = realloc(block, 200 * KIB);
    if (!block || block[63 * KIB] != 1 || malloc_usable_size(block) < 200 * KIB) _exit(4);
    free(block);
    free(zeros);
    free(__atomic_exchange_n((void **)&offered, NULL, __ATOMIC_ACQ_REL));
    if (errno != kept) _exit(5);
    handled++;
}

int main(void) {
    alarm(20);
    free(HIDE(malloc(10 * MIB)));
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval period = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_PROF, &period, NULL);
    unsigned random = 1;
    for (double end = seconds() + 2; seconds() < end;)
        for (int i = 0; i < 100; i++) {
            random = random * 1664525 + 1013904223;
            size_t bytes = 40 * KIB + (random >> 8) % MIB;
            char *block = malloc(bytes);
            CHECK(block);
            block[0] = block[bytes - 1] = 1;
            block = realloc(block, bytes + 300 * KIB);
            CHECK(block && block[0] == 1);
            free(__atomic_exchange_n((void **)&offered, block, __ATOMIC_ACQ_REL));
        }
    CHECK(handled > 5);
    return 0;
}
