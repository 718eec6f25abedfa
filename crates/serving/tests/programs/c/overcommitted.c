/* Asks for half as much again as the machine has, by the number of its pages: the system's own check refuses that, and so does the arena. */
#include "check.h"

int main(void) {
    for (int i = 0; i < 8; i++) free(HIDE(malloc(4 * MIB)));
    size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    char line[256];
    size_t swap = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file)) sscanf(line, "SwapTotal: %zu", &swap);
    fclose(file);
    errno = 0;
    char *much = malloc(all + swap * KIB + all / 2);
    printf("%d %d\n", much != NULL, much ? 0 : errno);
    return 0;
}
