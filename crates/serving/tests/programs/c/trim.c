/* Memory is back with the system within a second of asking for that. With an argument, lowtide_trim is asked. */
#include "check.h"
#include "lowtide.h"

int main(int count, char **arguments) {
    (void)arguments;
    size_t before = resident();
    enum { BLOCKS = 100 };
    char *blocks[BLOCKS];
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < BLOCKS; i++) blocks[i] = memset(malloc(2 * MIB), 1, 2 * MIB);
        for (int i = 0; i < BLOCKS; i++)
            if (i != 50) free(blocks[i]);
        if (turn < 2) free(blocks[50]);
    }
    CHECK(resident() > before + 100 * MIB);
    double start = seconds();
    errno = 4711;
    if (count > 1)
        CHECK(lowtide_trim && lowtide_trim() > 100 * MIB);
    else
        CHECK(malloc_trim(0) == 1);
    CHECK(errno == 4711);
    CHECK(seconds() - start < 1 && resident() < before + 12 * MIB);
    CHECK(blocks[50][MIB] == 1);
    free(blocks[50]);
    return 0;
}
