/* Forks in the middle of what several threads do. Each child allocates, frees what its parent allocated, and exits. */
#include "check.h"

static _Atomic int over;

static void *work(void *argument) {
    unsigned random = (unsigned)(uintptr_t)argument;
    while (!over) {
        random = random * 1664525 + 1013904223;
        char *large = malloc(33 * KIB + (random >> 8) % MIB), *small = malloc(random >> 20);
        CHECK(large && small);
        large[0] = 1;
        large = realloc(large, 40 * KIB + (random >> 6) % MIB);
        CHECK(large);
        free(small);
        free(large);
    }
    return NULL;
}

static void child(char *inherited, int turn) {
    alarm(20);
    CHECK(holds(inherited, 200 * KIB, (unsigned char)turn));
    free(inherited);
    for (int i = 0; i < 20; i++) {
        char *block = calloc(1, 100 * KIB + (size_t)i * 10 * KIB);
        CHECK(block && is_zero(block, 100 * KIB));
        memset(block, 1, 100 * KIB);
        if (i % 3) free(block);
    }
    if (turn % 10 == 0) {
        pthread_t thread;
        over = 0;
        CHECK(pthread_create(&thread, NULL, work, (void *)1) == 0);
        usleep(2000);
        over = 1;
        pthread_join(thread, NULL);
    }
    exit(0);
}

int main(void) {
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int turn = 0; turn < 200; turn++) {
        char *inherited = malloc(200 * KIB);
        fill(inherited, 200 * KIB, (unsigned char)turn);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child(inherited, turn);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(holds(inherited, 200 * KIB, (unsigned char)turn));
        free(inherited);
    }
    over = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return 0;
}
