/* Its control group is full: memory that no block holds goes back by itself, where the program has threads. The file is what the group is said to have. */
#include "check.h"

static void say(const char *file, size_t bytes) {
    FILE *now = fopen(file, "w");
    CHECK(now && fprintf(now, "%zu\n", bytes) > 0 && fclose(now) == 0);
}

static void *sleeps(void *unused) {
    sleep(60);
    return unused;
}

int main(int count, char **arguments) {
    CHECK(count > 1);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, sleeps, NULL) == 0);
    size_t before = resident();
    char *blocks[100];
    for (int i = 0; i < 100; i++) blocks[i] = memset(malloc(MIB), 1, MIB);
    for (int i = 0; i < 100; i++) free(HIDE(blocks[i]));
    usleep(1500000);
    CHECK(resident() > before + 90 * MIB);
    say(arguments[1], 1000 * MIB);
    for (int turn = 0; turn < 300 && resident() > before + 12 * MIB; turn++) usleep(10000);
    CHECK(resident() < before + 12 * MIB);
    return 0;
}
