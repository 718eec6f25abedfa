/* When the library that serves is opened: `opened WAY`. Blocks from before and after go their ways in any mix. */
#include "check.h"
#include <dlfcn.h>
#include <sys/mman.h>

#define BLOCKS 64
#define LARGE (256 * KIB)

static int is_open(void) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, "liblowtide_serving.so") != NULL;
    fclose(maps);
    return found;
}

/* So many bytes in large blocks, each checked and freed. */
static void ask(size_t bytes) {
    for (size_t asked = 0; asked < bytes; asked += LARGE) {
        char *block = HIDE(malloc(LARGE));
        CHECK(block);
        block[0] = block[LARGE - 1] = (char)asked;
        free(block);
    }
}

static void *volatile shared[BLOCKS];

/* Takes over what another thread has put into a slot, and puts something else there. */
static void *trade(void *seed) {
    unsigned state = (unsigned)(uintptr_t)seed;
    for (int turn = 0; turn < 20000; turn++) {
        state = state * 1103515245 + 12345;
        size_t size = 20 * KIB + state % (200 * KIB);
        unsigned way = state >> 28;
        unsigned char *block = way < 4 ? calloc(1, size) : way < 6 ? memalign(4096, size) : malloc(size);
        CHECK(block);
        memcpy(block, &size, sizeof size);
        block[size - 1] = (unsigned char)size;
        unsigned char *other = __atomic_exchange_n(&shared[state >> 8 & (BLOCKS - 1)], block, __ATOMIC_ACQ_REL);
        if (!other)
            continue;
        memcpy(&size, other, sizeof size);
        CHECK(other[size - 1] == (unsigned char)size && malloc_usable_size(other) >= size);
        if (way & 1) {
            other = realloc(other, size * 2);
            CHECK(other && other[size - 1] == (unsigned char)size);
        }
        free(other);
    }
    return NULL;
}

static void threads(void) {
    pthread_t ids[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&ids[i], NULL, trade, (void *)(i * 7 + 1)) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    CHECK(is_open());
    for (int i = 0; i < BLOCKS; i++)
        free(shared[i]);
}

/* Children of a process that is opening it load libraries of their own. */
static void forks(void) {
    pthread_t id;
    CHECK(pthread_create(&id, NULL, trade, (void *)1) == 0);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            alarm(20);
            void *library = dlopen("libm.so.6", RTLD_NOW);
            CHECK(library && dlsym(library, "sin"));
            ask(80 * MIB);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    pthread_join(id, NULL);
    CHECK(is_open());
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "";
    if (!strcmp(way, "at once")) {
        CHECK(is_open());
        ask(200 * MIB);
        return 0;
    }
    CHECK(!is_open());
    char *early = malloc(LARGE), *small = malloc(100);
    memset(early, 7, LARGE);
    if (!strcmp(way, "little")) {
        ask(40 * MIB);
        CHECK(!is_open());
    } else if (!strcmp(way, "locked")) {
        if (mlockall(MCL_CURRENT))
            return 77;
        ask(200 * MIB);
        CHECK(!is_open());
    } else if (!strcmp(way, "threads")) {
        threads();
    } else if (!strcmp(way, "forks")) {
        forks();
    } else if (!strcmp(way, "missing")) {
        ask(200 * MIB);
        CHECK(!is_open());
    } else {
        if (!strcmp(way, "overwritten")) {
            memset(words[0], 'x', strlen(words[0]));
            clearenv();
        }
        errno = 5;
        ask(80 * MIB);
        CHECK(errno == 5 && is_open());
    }
    small = realloc(small, LARGE);
    early = realloc(early, 4 * LARGE);
    CHECK(small && early && early[0] == 7 && early[LARGE - 1] == 7);
    free(early);
    free(small);
    return 0;
}
