/* When the library that serves is opened: `opened WAY`. Blocks from before and after go their ways in any mix. */
#include "check.h"
#include <dlfcn.h>
#include <fcntl.h>
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

static void *ask_much(void *unused) {
    ask(100 * MIB);
    return unused;
}

/* Forks, all the while a slow library is opened by a thread of its own. */
static void meanwhile(void) {
    pthread_t id;
    CHECK(pthread_create(&id, NULL, ask_much, NULL) == 0);
    double start = seconds();
    while (seconds() < start + 0.6) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            alarm(20);
            CHECK(dlopen("libm.so.6", RTLD_NOW));
            ask(100 * MIB);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    pthread_join(id, NULL);
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
    } else if (!strcmp(way, "meanwhile")) {
        meanwhile();
    } else if (!strcmp(way, "grown")) {
        char *block = NULL;
        for (size_t size = KIB; size <= 80 * MIB; size *= 2)
            CHECK((block = realloc(block, size)));
        free(block);
        CHECK(is_open());
    } else if (!strcmp(way, "root")) {
        int maps = open("/proc/self/maps", O_RDONLY);
        if (chroot("/tmp"))
            return 77;
        static char text[1 << 20];
        size_t length = 0;
        for (ssize_t got; (got = read(maps, text + length, sizeof text - 1 - length)) > 0;)
            length += (size_t)got;
        CHECK(strstr(text, "liblowtide_serving.so"));
        ask(200 * MIB);
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
