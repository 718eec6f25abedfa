/* A signal handler frees a block twice while the program is inside the arena: zeros of a large block are made there. */
#include "check.h"
#include <sys/time.h>

static void *_Atomic offered;

static void handle(int signal) {
    (void)signal;
    void *block = __atomic_exchange_n((void **)&offered, NULL, __ATOMIC_ACQ_REL);
    free(HIDE(block));
    free(HIDE(block));
}

int main(void) {
    alarm(20);
    void *kept = malloc(5 * MIB);
    offered = malloc(100 * KIB);
    sink = kept;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval period = {{0, 0}, {0, 5000}};
    setitimer(ITIMER_PROF, &period, NULL);
    for (double end = seconds() + 10; seconds() < end;) {
        char *block = calloc(1, 30 * MIB);
        CHECK(block);
        for (size_t at = 0; at < 30 * MIB; at += 4 * KIB) block[at] = 1;
        free(block);
    }
    return 0;
}
