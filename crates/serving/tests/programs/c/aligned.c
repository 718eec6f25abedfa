/* Small aligned blocks where the arena serves: a thread that asks for many has those back that it freed last, and they are whole. With a number, so many
   are freed, and the first twice. */
#include "check.h"

#define KEPT 300
#define ROUNDS 60000
#define ALIKE 32

static void *aligned(size_t bytes) {
    void *block = NULL;
    CHECK(posix_memalign(&block, 64, bytes) == 0 && (uintptr_t)block % 64 == 0);
    CHECK(malloc_usable_size(block) >= bytes);
    return block;
}

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void *passed[64];

static void *works(void *argument) {
    unsigned chance = (unsigned)(uintptr_t)argument;
    char *blocks[KEPT] = {0};
    size_t sizes[KEPT] = {0};
    unsigned char seeds[KEPT] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        unsigned at = next(&chance) % KEPT;
        if (blocks[at]) {
            CHECK(holds(blocks[at], sizes[at], seeds[at]) && blocks[at][sizes[at] - 1] == (char)seeds[at]);
            /* Another thread frees some of them. */
            void *other = blocks[at];
            if (round % 5 == 0) other = __atomic_exchange_n(&passed[next(&chance) % 64], other, __ATOMIC_ACQ_REL);
            free(HIDE(other));
        }
        size_t bytes = 1 + next(&chance) % (1u << (3 + next(&chance) % 13));
        /* Others come from where they always did. */
        char *block = round % 3 ? aligned(bytes) : malloc(bytes);
        CHECK(block);
        if (round % 7 == 0) {
            block[0] = 42;
            CHECK((block = realloc(block, bytes += 100)) && block[0] == 42);
        }
        blocks[at] = block, sizes[at] = bytes, seeds[at] = (unsigned char)next(&chance);
        fill(block, bytes, seeds[at]);
    }
    for (int i = 0; i < KEPT; i++) free(HIDE(blocks[i]));
    return NULL;
}

int main(int count, char **arguments) {
    /* There is an arena from now on, and this thread has asked for many. */
    free(HIDE(malloc(8 * MIB)));
    for (int i = 0; i < 3000; i++) free(HIDE(aligned(100)));
    void *alike[ALIKE];
    if (count > 1) {
        /* More than a thread keeps of a size, if it is asked for. */
        void *blocks[200];
        int freed = atoi(arguments[1]);
        for (int i = 0; i < freed; i++) blocks[i] = aligned(2000);
        for (int i = 0; i < freed; i++) free(HIDE(blocks[i]));
        free(HIDE(blocks[0]));
        return 0;
    }
    for (int i = 0; i < ALIKE; i++) alike[i] = memset(aligned(2000), 1, 2000);
    for (int i = 0; i < ALIKE; i++) free(HIDE(alike[i]));
    for (int i = ALIKE - 1; i >= 0; i--) CHECK(aligned(2000) == alike[i]);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < ALIKE; i++) free(HIDE(alike[i]));
        works((void *)7);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int i = 0; i < ALIKE; i++) free(HIDE(alike[i]));
    size_t before = mallinfo2().uordblks;
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, works, (void *)(i + 1)) == 0);
    works((void *)9);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 64; i++) free(HIDE(passed[i]));
    /* What threads have kept goes back when they end, and what this one keeps is not counted. glibc keeps a little of each size. */
    CHECK(mallinfo2().uordblks < before + 400 * KIB);
    return 0;
}
