/* Blocks of slabs, where there is no arena: what is promised of every block holds for them, and is measured for a program that replaces
   blocks at random, of which it touches little ("sparse", and "larger" of larger blocks too), all ("dense"), or all of the larger ones ("mixed"). */
#include "check.h"
#include "lowtide.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define BLOCKS 300
#define TURNS 60000

static unsigned long state = 88172645463325252UL;

static unsigned long next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* From 32 KiB on, all magnitudes alike. */
static size_t size(int magnitudes) {
    size_t least = 32 * KIB << next() % magnitudes;
    return least + next() % least;
}

/* Blocks of less than `dense_from` are sparse. */
static void measure(int count, int turns, int magnitudes, size_t dense_from) {
    static char *blocks[BLOCKS];
    for (int turn = 0; turn < turns; turn++) {
        char **place = &blocks[next() % count];
        free(HIDE(*place));
        size_t bytes = size(magnitudes);
        CHECK((*place = malloc(bytes)));
        memset(*place, 1, bytes >= dense_from ? bytes : 256);
        (*place)[bytes - 1] = 1;
    }
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    printf("%zu %ld\n", peak_resident(), usage.ru_minflt);
}

/* Whether a new block of this size comes from a slab: those begin with a page. */
static int is_served(size_t bytes) {
    int pages = 0;
    for (int i = 0; i < 8; i++) {
        char *block = HIDE(malloc(bytes));
        pages += (uintptr_t)block % 4096 == 0;
        free(block);
    }
    return pages == 8;
}

/* Little is touched, as slabs would not serve the program for long otherwise. */
static void mark(char *block, size_t bytes) {
    memset(block, 7, 256);
    block[bytes - 1] = 7;
}

static int is_marked(const char *block, size_t bytes) { return block[0] == 7 && block[255] == 7 && block[bytes - 1] == 7; }

/* What is done to pages ends with the block. */
static void pages(void) {
    for (int round = 0; round < 64; round++) {
        size_t bytes = 512 * KIB;
        char *block = malloc(bytes);
        CHECK(block && (uintptr_t)block % 4096 == 0);
        if (round % 2) CHECK(mprotect(block, bytes, PROT_READ) == 0);
        else CHECK(madvise(block, bytes, MADV_DONTFORK) == 0);
        free(HIDE(block));
        CHECK((block = malloc(bytes)));
        mark(block, bytes);
        if (round < 8) {
            pid_t pid = fork();
            if (pid == 0) {
                /* The child allocates and frees too, also what is its parent's. */
                int whole = is_marked(block, bytes);
                free(HIDE(block));
                for (int i = 0; i < 2000; i++) free(HIDE(memset(malloc(100 * KIB), 1, 100 * KIB)));
                _exit(whole ? 0 : 1);
            }
            int status;
            CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        free(HIDE(block));
    }
}

/* Sizes, and what realloc keeps. */
static void sizes(void) {
    for (size_t bytes = 32 * KIB; bytes <= 8 * MIB; bytes += bytes < MIB ? 7777 : 333333) {
        char *block = malloc(bytes);
        CHECK(block && malloc_usable_size(block) >= bytes && malloc_usable_size(block) <= 2 * bytes);
        mark(block, bytes);
        CHECK((block = realloc(block, bytes * 2)) && is_marked(block, bytes));
        CHECK((block = realloc(HIDE(block), bytes)) && is_marked(block, bytes));
        CHECK(realloc(block, 0) == NULL);
        mark(block = HIDE(malloc(bytes)), bytes / 3);
        CHECK((block = realloc(block, bytes / 3)) && is_marked(block, bytes / 3));
        CHECK(realloc(block, 0) == NULL);
        CHECK((block = aligned_alloc(4096, bytes)) && (uintptr_t)block % 4096 == 0);
        free(HIDE(block));
        CHECK((block = aligned_alloc(64 * KIB, bytes)) && (uintptr_t)block % (64 * KIB) == 0);
        free(HIDE(block));
        CHECK((block = calloc(1, bytes)) && is_zero(block, bytes));
        mark(block, bytes);
        free(HIDE(block));
    }
}

/* Counts, and memory that goes back. */
static void counts(void) {
    struct mallinfo2 before = mallinfo2();
    char *blocks[200];
    for (int i = 0; i < 200; i++) CHECK((blocks[i] = memset(malloc(200 * KIB), 1, 200 * KIB)));
    struct mallinfo2 during = mallinfo2();
    CHECK(during.hblks >= before.hblks + 200 && during.hblkhd >= before.hblkhd + 200 * 200 * KIB);
    size_t most = resident();
    for (int i = 0; i < 200; i++) free(HIDE(blocks[i]));
    struct mallinfo2 after = mallinfo2();
    CHECK(after.hblks == before.hblks && after.hblkhd == before.hblkhd);
    CHECK(resident() < most - 30 * MIB);
    for (int i = 0; i < 200; i++) CHECK((blocks[i] = memset(malloc(40 * KIB), 1, 40 * KIB)));
    for (int i = 0; i < 200; i++) free(HIDE(blocks[i]));
    malloc_trim(0);
    size_t little = resident();
    CHECK(lowtide_trim && little < most - 38 * MIB);
}

/* Addresses that nothing lies on go back before they are limited; before memory is locked, blocks are glibc's again. */
static void limits(void) {
    struct rlimit limit = {2048 * MIB, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    void *mapping = mmap(NULL, 512 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapping != MAP_FAILED);
    for (size_t bytes = 32 * KIB; bytes <= MIB; bytes += 9999) free(HIDE(memset(malloc(bytes), 1, bytes)));
    if (mlockall(MCL_CURRENT) == 0) {
        CHECK(!is_served(50 * KIB) && !is_served(700 * KIB) && !is_served(2 * MIB));
        munlockall();
    }
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    const char *way = arguments[1];
    if (strcmp(way, "sparse") == 0) return measure(BLOCKS, TURNS, 4, SIZE_MAX), 0;
    if (strcmp(way, "dense") == 0) return measure(BLOCKS, TURNS, 4, 0), 0;
    if (strcmp(way, "larger") == 0) return measure(60, TURNS, 8, SIZE_MAX), 0;
    if (strcmp(way, "mixed") == 0) return measure(20, TURNS / 8, 7, MIB), 0;
    turn_over();
    CHECK(is_served(50 * KIB) && is_served(MIB) && !is_served(20 * KIB) && !is_served(2 * MIB));
    for (int i = 0; i < 300; i++) free(HIDE(malloc(2 * MIB)));
    CHECK(is_served(MIB + 4096) && is_served(5 * MIB) && is_served(8 * MIB) && !is_served(9 * MIB));
    if (strcmp(way, "pages") == 0) pages();
    else if (strcmp(way, "sizes") == 0) sizes();
    else if (strcmp(way, "counts") == 0) counts();
    else limits();
    return 0;
}
