/* A program with one thread keeps one, however long the arena serves, and memory that nothing uses goes back all the same. So it may do what
 * the system allows to such processes alone. */
#include "check.h"
#include <dirent.h>
#include <sched.h>

static int threads(void) {
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder);
    int count = -2;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

int main(int count, char **arguments) {
    char *blocks[100];
    for (int i = 0; i < 100; i++) blocks[i] = memset(malloc(MIB), 1, MIB);
    for (int i = 0; i < 100; i++) free(HIDE(blocks[i]));
    size_t before = resident();
    double start = seconds();
    while (seconds() - start < 4 && (count < 2 || resident() + 60 * MIB > before)) {
        free(HIDE(memset(malloc(MIB), 1, MIB)));
        usleep(2000);
        CHECK(threads() == 1);
    }
    if (count > 1) CHECK(resident() + 60 * MIB <= before);
    if (unshare(CLONE_NEWUSER) != 0) CHECK(errno != EINVAL);
    return 0;
}
