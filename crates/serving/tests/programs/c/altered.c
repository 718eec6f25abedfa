/* What a program does to the pages of a block ends with the block: the next one there can be written, is there after a fork, and is not
 * locked. */
#include "check.h"
#include <sys/mman.h>

#define SIZE (2 * MIB)

static long locked(void) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file)) sscanf(line, "VmLck: %ld", &kib);
    fclose(file);
    return kib;
}

int main(void) {
    for (int way = 0; way < 4; way++) {
        for (int round = 0; round < 40; round++) {
            char *block = aligned_alloc(4096, SIZE);
            CHECK(block);
            memset(block, 1, SIZE);
            if (way == 0) CHECK(mprotect(block, SIZE, PROT_READ) == 0);
            if (way == 1) CHECK(madvise(block, SIZE, MADV_DONTFORK) == 0);
            if (way == 2) CHECK(mlock(block, SIZE / 4) == 0 || errno == ENOMEM || errno == EPERM);
            if (way == 3) CHECK(mprotect(block + 4096, 4096, PROT_NONE) == 0);
            if (round % 3 == 1) block = realloc(block, SIZE / 2);
            if (way == 0 && round % 3 == 1) CHECK(mprotect(block, SIZE / 2, PROT_READ | PROT_WRITE) == 0);
            free(HIDE(block));
            block = malloc(SIZE);
            CHECK(block);
            memset(block, 2, SIZE);
            if (way == 1 && round % 10 == 0) {
                pid_t pid = fork();
                if (pid == 0) _exit(holds(block, 1, 2) && block[SIZE - 1] == 2 ? 0 : 1);
                int status;
                CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
            }
            free(HIDE(block));
            CHECK(way != 2 || locked() == 0);
        }
    }
    return 0;
}
