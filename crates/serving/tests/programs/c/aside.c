/* Frees what was never handed out, upon which the library steps aside and its thread ends; then forks beside a thread. */
#include "check.h"

static void *stay(void *unused) {
    (void)unused;
    for (;;) pause();
    return NULL;
}

int main(void) {
    for (int i = 0; i < 40; i++) free(HIDE(memset(malloc(2 * MIB), 1, 2 * MIB)));
    char *block = malloc(2 * MIB);
    free(HIDE(block + 4 * KIB));
    usleep(500000);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, stay, NULL) == 0);
    int slow = 0;
    for (int turn = 0; turn < 4; turn++) {
        double start = seconds();
        pid_t pid = fork();
        if (pid == 0) _exit(0);
        slow += seconds() - start > 0.09;
        CHECK(waitpid(pid, NULL, 0) == pid);
    }
    CHECK(slow < 3);
    return 0;
}
