/* Another thread than the first calls exit, while the others go on allocating. */
#include "check.h"

static void *work(void *unused) {
    (void)unused;
    for (;;) free(HIDE(malloc(100 * KIB)));
    return NULL;
}

static void *leave(void *unused) {
    (void)unused;
    usleep(50000);
    exit(7);
}

int main(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, leave, NULL) == 0);
    for (;;) free(HIDE(malloc(200 * KIB)));
}
