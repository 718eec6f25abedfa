/* Threads free what others allocated, and die while their blocks live on. With an argument, stacks of so many KiB. */
#include "check.h"

enum { THREADS = 4, SLOTS = 64, TURNS = 20000 };
static void *_Atomic slots[SLOTS];

static size_t size_of(unsigned random) { return 33 * KIB + random % (300 * KIB); }

static void *trade(void *argument) {
    unsigned random = (unsigned)(uintptr_t)argument;
    for (int turn = 0; turn < TURNS; turn++) {
        random = random * 1664525 + 1013904223;
        size_t bytes = size_of(random >> 7);
        unsigned char *block = malloc(bytes);
        CHECK(block);
        *(size_t *)block = bytes;
        block[bytes - 1] = (unsigned char)bytes;
        unsigned char *other = __atomic_exchange_n((void **)&slots[random >> 26], block, __ATOMIC_ACQ_REL);
        if (other) {
            size_t length = *(size_t *)other;
            CHECK(other[length - 1] == (unsigned char)length);
            if (turn % 7 == 0) {
                other = realloc(other, length + 50 * KIB);
                CHECK(other && *(size_t *)other == length && other[length - 1] == (unsigned char)length);
            }
            free(other);
        }
    }
    return NULL;
}

static void *leave(void *argument) {
    void **place = argument;
    free(*place);
    *place = calloc(1, 100 * KIB);
    CHECK(*place);
    memset(*place, 7, 100 * KIB);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (count > 1) CHECK(pthread_attr_setstacksize(&attributes, strtoul(arguments[1], NULL, 10) * KIB) == 0);

    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], &attributes, trade, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);

    void *left = NULL;
    for (int i = 0; i < 500; i++) {
        CHECK(pthread_create(&threads[0], &attributes, leave, &left) == 0);
        pthread_join(threads[0], NULL);
        CHECK(((char *)left)[99 * KIB] == 7);
    }
    free(left);
    return 0;
}
