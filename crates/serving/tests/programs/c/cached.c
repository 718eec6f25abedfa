/* Without an arena: blocks that threads keep for themselves hold what was written, are handed from thread to thread, and go back when their
 * thread ends. */
#include "check.h"

#define THREADS 4
#define ROUNDS 20000
#define KEPT 40

static char *volatile mailbox[THREADS][8];

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void *works(void *argument) {
    int me = (int)(intptr_t)argument;
    unsigned chance = 17u + (unsigned)me;
    char *blocks[KEPT] = {0};
    size_t sizes[KEPT] = {0};
    unsigned char seeds[KEPT] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        int at = (int)(next(&chance) % KEPT);
        if (blocks[at]) {
            CHECK(holds(blocks[at], sizes[at], seeds[at]) && blocks[at][sizes[at] - 1] == (char)seeds[at]);
            /* Another thread frees it, or this one does. */
            char *volatile *place = &mailbox[(me + 1) % THREADS][next(&chance) % 8];
            char *other = __atomic_exchange_n(place, blocks[at], __ATOMIC_ACQ_REL);
            free(HIDE(other));
        }
        size_t bytes = 20 * KIB + next(&chance) % (round % 50 == 0 ? 3 * MIB : 200 * KIB);
        blocks[at] = round % 7 == 0 ? calloc(1, bytes) : malloc(bytes);
        CHECK(blocks[at] && malloc_usable_size(blocks[at]) >= bytes);
        if (round % 7 == 0) CHECK(is_zero(blocks[at], bytes));
        if (round % 11 == 0) {
            bytes += 30 * KIB;
            blocks[at] = realloc(blocks[at], bytes);
            CHECK(blocks[at]);
        }
        sizes[at] = bytes, seeds[at] = (unsigned char)next(&chance);
        fill(blocks[at], bytes, seeds[at]);
    }
    for (int i = 0; i < KEPT; i++) free(HIDE(blocks[i]));
    return NULL;
}

static void *ends(void *unused) {
    char *blocks[16];
    /* A thread keeps blocks once it has freed many. */
    for (int i = 0; i < 1200; i++) free(HIDE(malloc(40 * KIB)));
    for (int i = 0; i < 16; i++) blocks[i] = memset(malloc(50 * KIB), 1, 50 * KIB);
    for (int i = 0; i < 16; i++) free(HIDE(blocks[i]));
    return unused;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, works, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < 8; j++) free(HIDE(mailbox[i][j]));
    malloc_trim(0);
    size_t before = resident();
    for (int i = 0; i < 3000; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, ends, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
    CHECK(resident() < before + 6 * MIB);
    return 0;
}
