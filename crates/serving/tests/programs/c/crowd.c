/* Many threads, of which each does a little and ends: `crowd TURNS ROUNDS`. Prints the peak of resident memory in KiB, and the page faults. */
#include "check.h"
#include <sys/resource.h>

#define THREADS 40

static int turns;

static void *works(void *seed) {
    unsigned state = (unsigned)(uintptr_t)seed;
    for (int i = 0; i < turns; i++) {
        state = state * 1103515245 + 12345;
        size_t bytes = 32 * KIB + (state >> 8) % (400 * KIB);
        free(HIDE(memset(malloc(bytes), 1, bytes)));
    }
    return NULL;
}

int main(int count, char **words) {
    CHECK(count == 3);
    turns = atoi(words[1]);
    for (int round = 0; round < atoi(words[2]); round++) {
        pthread_t ids[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&ids[i], NULL, works, (void *)(i + 1)) == 0);
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(ids[i], NULL) == 0);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%zu %ld\n", peak_resident(), usage.ru_minflt);
    return 0;
}
