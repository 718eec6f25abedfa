/* A thread waits for the arena, which another keeps busy with giving memory back, when a signal comes and its handler forks. */
#include "check.h"

#define BLOCKS 3000
#define BYTES (64 * KIB)

static char *blocks[BLOCKS], *inherited;
static _Atomic int trimming, forked;
static pthread_t first;

static void *work(void *unused) {
    (void)unused;
    char *block = malloc(100 * KIB), *zeros = calloc(1, 200 * KIB);
    if (!block || !zeros || !is_zero(zeros, 200 * KIB)) _exit(3);
    if (malloc_usable_size(inherited) < BYTES / 2) _exit(4);
    inherited = realloc(inherited, 300 * KIB);
    if (!inherited || !holds(inherited, BYTES, 1)) _exit(5);
    free(inherited);
    free(block);
    free(zeros);
    free(blocks[1]);
    malloc_trim(0);
    pid_t pid = fork();
    if (pid == 0) {
        free(HIDE(malloc(MIB)));
        _exit(9);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 9) _exit(6);
    _exit(0);
}

/* The thread that forked is inside the arena for as long as its handler runs; another is not. */
static void child(void) {
    pthread_t thread;
    alarm(10);
    free(HIDE(malloc(100 * KIB)));
    if (pthread_create(&thread, NULL, work, NULL)) _exit(7);
    pthread_join(thread, NULL);
}

static void handle(int signal) {
    (void)signal;
    pid_t pid = fork();
    if (pid == 0) child();
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) _exit(2);
    forked++;
}

static void *trim(void *unused) {
    (void)unused;
    trimming = 1;
    malloc_trim(0);
    return NULL;
}

static void *alert(void *unused) {
    (void)unused;
    while (!trimming) {}
    usleep(2000);
    pthread_kill(first, SIGUSR1);
    return NULL;
}

int main(void) {
    first = pthread_self();
    signal(SIGUSR1, handle);
    alarm(60);
    for (int turn = 0; turn < 5; turn++) {
        for (int i = 0; i < BLOCKS; i++) {
            if (!blocks[i]) blocks[i] = malloc(BYTES);
            fill(blocks[i], BYTES, 1);
        }
        inherited = blocks[0];
        for (int i = 2; i < BLOCKS; i += 2) {
            free(HIDE(blocks[i]));
            blocks[i] = NULL;
        }
        pthread_t threads[2];
        trimming = 0;
        CHECK(pthread_create(&threads[0], NULL, alert, NULL) == 0 && pthread_create(&threads[1], NULL, trim, NULL) == 0);
        while (!trimming) {}
        while (forked <= turn) {
            char *block = malloc(40 * KIB);
            CHECK(block);
            block[0] = 1;
            free(HIDE(block));
        }
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    }
    return 0;
}
