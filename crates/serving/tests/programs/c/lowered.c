/* Limits its addresses in the middle of its work, or has a child do so: what fits is served, by whom and whatever its size. */
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>

static void work(void) {
    char *small[5000], *large[8];
    for (int i = 0; i < 5000; i++) {
        small[i] = malloc(1000);
        CHECK(small[i]);
    }
    for (int i = 0; i < 8; i++) {
        large[i] = malloc((size_t)(1 + i * 10) * MIB);
        CHECK(large[i]);
        fill(large[i], (size_t)(1 + i * 10) * MIB, (unsigned char)i);
    }
    char *zeros = calloc(1, 64 * MIB);
    CHECK(zeros && is_zero(zeros, 64 * MIB));
    for (int i = 0; i < 8; i++) {
        CHECK(holds(large[i], (size_t)(1 + i * 10) * MIB, (unsigned char)i));
        large[i] = realloc(large[i], (size_t)(2 + i * 11) * MIB);
        CHECK(large[i] && holds(large[i], (size_t)(1 + i * 10) * MIB, (unsigned char)i));
        free(HIDE(large[i]));
    }
    free(HIDE(zeros));
    for (int i = 0; i < 5000; i++) free(HIDE(small[i]));
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    struct rlimit limit = {2048 * MIB, RLIM_INFINITY}, now;
    char *before = malloc(8 * MIB);
    fill(before, 8 * MIB, 1);
    free(HIDE(malloc(MIB)));
    pid_t pid = strcmp(arguments[1], "child") == 0 ? fork() : 0;
    if (pid) {
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(getrlimit(RLIMIT_AS, &now) == 0 && now.rlim_cur == RLIM_INFINITY);
    } else {
        errno = 0;
        if (strcmp(arguments[1], "prlimit") == 0)
            CHECK(prlimit(getpid(), RLIMIT_AS, &limit, &now) == 0 && now.rlim_cur == RLIM_INFINITY);
        else
            CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        CHECK(errno == 0 && getrlimit(RLIMIT_AS, &now) == 0 && now.rlim_cur == 2048 * MIB);
        limit.rlim_cur = 1;
        limit.rlim_max = 0;
        CHECK(setrlimit(RLIMIT_AS, &limit) == -1 && errno == EINVAL);
    }
    work();
    CHECK(holds(before, 8 * MIB, 1));
    free(HIDE(before));
    return 0;
}
