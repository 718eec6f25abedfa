/* Locks all its memory, before or after the first blocks: what is alive is locked, what is free is not there, and new blocks are locked. */
#include "check.h"
#include <sys/mman.h>
#include <sys/resource.h>

static long field(const char *name) {
    char line[256], format[64];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    snprintf(format, sizeof format, "%s: %%ld", name);
    while (fgets(line, sizeof line, file)) sscanf(line, format, &kib);
    fclose(file);
    return kib;
}

int main(int count, char **arguments) {
    CHECK(count > 1);
    int first = strcmp(arguments[1], "first") == 0;
    if (first && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;
    char *kept[8];
    for (int i = 0; i < 8; i++) kept[i] = memset(malloc(4 * MIB), 1, 4 * MIB);
    for (int i = 0; i < 200; i++) free(HIDE(memset(malloc(3 * MIB), 1, 3 * MIB)));
    for (int i = 0; i < 8; i += 2) free(HIDE(kept[i]));
    if (!first && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;
    CHECK(field("VmRSS") < 100 * 1024);
    CHECK(first || field("VmLck") >= 4 * 4 * 1024);
    long before = field("VmLck");
    char *more = malloc(20 * MIB);
    CHECK(more && field("VmLck") >= before + 20 * 1024);
    for (int i = 1; i < 8; i += 2) {
        CHECK(kept[i][4 * MIB - 1] == 1);
        free(HIDE(kept[i]));
    }
    free(HIDE(more));
    for (int i = 0; i < 50; i++) free(HIDE(memset(malloc(5 * MIB), 1, 5 * MIB)));
    CHECK(field("VmRSS") < 100 * 1024);
    return 0;
}
