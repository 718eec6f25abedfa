/* Children that go on without the library, by fork and exec, posix_spawn and vfork. */
#include "check.h"
#include <spawn.h>

extern char **environ;

static void wait_for(pid_t pid) {
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    char *blocks[100];
    for (int i = 0; i < 100; i++) blocks[i] = memset(malloc(500 * KIB), i, 500 * KIB);
    unsetenv("LD_PRELOAD");
    char *arguments[] = {"sh", "-c", "test -z \"$LD_PRELOAD\" && ls / > /dev/null", NULL};
    for (int turn = 0; turn < 10; turn++) {
        pid_t pid = fork();
        if (pid == 0) {
            execv("/bin/sh", arguments);
            _exit(127);
        }
        wait_for(pid);
        CHECK(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) == 0);
        wait_for(pid);
        pid = vfork();
        if (pid == 0) {
            execv("/bin/sh", arguments);
            _exit(127);
        }
        wait_for(pid);
    }
    for (int i = 0; i < 100; i++) {
        CHECK(blocks[i][400 * KIB] == i);
        free(blocks[i]);
    }
    return 0;
}
