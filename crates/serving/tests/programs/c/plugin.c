/* A library that is opened late: it has thread-local memory, allocates when it is opened, and hands blocks over. */
#include "check.h"

static __thread char own[64];
static void *early;

__attribute__((constructor)) static void begin(void) {
    early = malloc(200 * KIB);
    memset(early, 1, 200 * KIB);
}

__attribute__((destructor)) static void end(void) { free(early); }

void *give(size_t bytes) {
    own[0]++;
    return memset(malloc(bytes), own[0], bytes);
}

void take(void *block) { free(block); }
