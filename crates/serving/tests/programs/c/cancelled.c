/* A thread that is to be cancelled allocates: that is no place to end at, whether the arena has to be made or pages be cleared. */
#include "check.h"
#include "lowtide.h"

static int reached;

static void *work(void *unused) {
    (void)unused;
    CHECK(pthread_cancel(pthread_self()) == 0);
    for (int turn = 0; turn < 3; turn++) {
        free(HIDE(memset(malloc(8 * MIB), 1, 8 * MIB)));
        char *zeros = calloc(1, 4 * MIB);
        CHECK(zeros && is_zero(zeros, 4 * MIB));
        free(HIDE(zeros));
        lowtide_mark("turn");
        lowtide_step();
        lowtide_trim();
    }
    reached++;
    pthread_testcancel();
    return NULL;
}

int main(void) {
    CHECK(lowtide_mark && lowtide_step && lowtide_trim);
    for (int turn = 1; turn <= 2; turn++) {
        pthread_t thread;
        void *end;
        CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
        CHECK(pthread_join(thread, &end) == 0 && end == PTHREAD_CANCELED && reached == turn);
    }
    free(HIDE(memset(malloc(MIB), 1, MIB)));
    return 0;
}
