/* The first thread ends by itself, as does the one it started: nothing else may keep the process alive. */
#include "check.h"

static void *last(void *unused) {
    (void)unused;
    usleep(200000);
    return NULL;
}

int main(void) {
    for (int i = 0; i < 20; i++) free(HIDE(memset(malloc(5 * MIB), 1, 5 * MIB)));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, last, NULL) == 0);
    pthread_detach(thread);
    pthread_exit(NULL);
}
