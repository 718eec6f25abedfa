/* Programs of which some fault the same memory in again and again, and others do not. */
#include "check.h"
#include <lowtide.h>

int main(int count, char **arguments) {
    CHECK(count > 1);
    const char *way = arguments[1];
    if (strcmp(way, "again") == 0)
        for (int i = 0; i < 60; i++) free(HIDE(memset(malloc(40 * MIB), 1, 40 * MIB)));
    if (strcmp(way, "grows") == 0)
        for (int i = 0; i < 60; i++) CHECK(HIDE(memset(malloc(8 * MIB), 1, 8 * MIB)));
    if (strcmp(way, "phases") == 0)
        for (int i = 0; i < 8; i++) {
            char *blocks[10];
            for (int j = 0; j < 10; j++) blocks[j] = memset(malloc(40 * MIB), 1, 40 * MIB);
            for (int j = 0; j < 10; j++) free(HIDE(blocks[j]));
        }
    if (strcmp(way, "little") == 0)
        for (int i = 0; i < 60; i++) free(HIDE(memset(malloc(64 * KIB), 1, 64 * KIB)));
    if (strcmp(way, "sparse") == 0)
        for (int i = 0; i < 400; i++) free(HIDE(memset(malloc(40 * MIB), 1, 1)));
    if (strcmp(way, "marks") == 0) {
        for (int i = 0; i < 20; i++) {
            char *blocks[8];
            for (int j = 0; j < 8; j++) blocks[j] = memset(malloc(MIB), 1, MIB);
            for (int j = 0; j < 8; j++) free(HIDE(blocks[j]));
            if (lowtide_step) lowtide_step();
        }
    }
    return 0;
}
