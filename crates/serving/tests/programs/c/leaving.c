/* A process that ends without its exit functions, in the way that is named. */
#include "check.h"
#include <sys/time.h>

static void handle(int signal) {
    (void)signal;
    _exit(7);
}

/* A signal comes while the thread is anywhere in the allocators. */
static void interrupted(void) {
    struct itimerval time = {.it_value.tv_usec = 2000 + getpid() % 8 * 500};
    alarm(20);
    signal(SIGPROF, handle);
    CHECK(setitimer(ITIMER_PROF, &time, NULL) == 0);
    for (unsigned turn = 0;; turn++) {
        char *small[50], *large = malloc(40 * KIB + turn % 64 * KIB);
        for (int i = 0; i < 50; i++) small[i] = malloc(100 + (turn * 31 + (unsigned)i * 977) % 20000);
        for (int i = 0; i < 50; i++) free(HIDE(small[i]));
        free(HIDE(large));
    }
}

static void *churn(void *argument) {
    void *blocks[200] = {0};
    for (unsigned random = (unsigned)(uintptr_t)argument;;) {
        random = random * 1664525 + 1013904223;
        unsigned at = (random >> 8) % 200;
        free(blocks[at]);
        blocks[at] = malloc(32 * KIB + (random >> 10) % (100 * KIB));
    }
    return NULL;
}

/* A signal comes while the thread is inside the allocator below, for which the others wait inside the arena. */
static void interrupted_among_others(void) {
    struct itimerval time = {.it_value.tv_usec = 20000 + getpid() % 8 * 500};
    sigset_t signals;
    pthread_t thread;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPROF);
    signal(SIGPROF, handle);
    alarm(20);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    for (uintptr_t i = 1; i <= 2; i++) CHECK(pthread_create(&thread, NULL, churn, (void *)i) == 0);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    CHECK(setitimer(ITIMER_PROF, &time, NULL) == 0);
    for (;;) free(HIDE(malloc(3000)));
}

static void *leave(void *unused) {
    (void)unused;
    _exit(7);
}

static void in_a_small_thread(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * KIB);
    CHECK(pthread_create(&thread, &attributes, leave, NULL) == 0);
    pthread_join(thread, NULL);
}

static void work(void) {
    for (int i = 0; i < 20; i++) free(HIDE(memset(malloc(MIB), 1, MIB)));
}

int main(int count, char **arguments) {
    CHECK(count > 1);
    const char *way = arguments[1];
    work();
    if (strcmp(way, "_exit") == 0) _exit(7);
    if (strcmp(way, "_Exit") == 0) _Exit(7);
    if (strcmp(way, "quick_exit") == 0) quick_exit(7);
    if (strcmp(way, "small") == 0) in_a_small_thread();
    if (strcmp(way, "signal") == 0) interrupted();
    if (strcmp(way, "others") == 0) interrupted_among_others();
    int has_memory = strcmp(way, "fork") == 0;
    pid_t pid = has_memory ? fork() : vfork();
    if (pid == 0) {
        if (has_memory) work();
        _exit(9);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    free(HIDE(memset(malloc(MIB), 1, MIB)));
    return 7;
}
