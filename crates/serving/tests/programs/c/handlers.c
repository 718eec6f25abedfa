/* A program that locks something of its own around forks, which its other thread holds while it allocates. With LOCK it is a library
   that has the lock alone and registers its handlers when it is loaded; with LINKED, the program that uses that library. */
#include "check.h"
#include "lowtide.h"

void take(void);
void give(void);

#ifndef LINKED
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

void take(void) { pthread_mutex_lock(&own); }
void give(void) { pthread_mutex_unlock(&own); }
#endif

#ifdef LOCK
__attribute__((constructor)) static void begin(void) { CHECK(pthread_atfork(take, give, give) == 0); }
#else
static volatile int ends;

static void *work(void *unused) {
    while (!ends) {
        take();
        for (int i = 0; i < 50; i++) {
            char *block = HIDE(malloc(100 * KIB + (size_t)i * KIB));
            CHECK(block);
            block[0] = 1;
            free(block);
        }
        give();
    }
    return unused;
}

int main(void) {
    alarm(60);
#ifndef LINKED
    CHECK(pthread_atfork(take, give, give) == 0);
#endif
    /* The library that serves comes after the program's own handlers. */
    CHECK(lowtide_expect_steps != NULL);
    lowtide_expect_steps();
    pthread_t id;
    CHECK(pthread_create(&id, NULL, work, NULL) == 0);
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            free(malloc(200 * KIB));
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    ends = 1;
    pthread_join(id, NULL);
    return 0;
}
#endif
