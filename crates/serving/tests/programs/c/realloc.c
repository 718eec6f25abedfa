/* realloc in all directions across the border, with what is in the blocks. */
#include "check.h"

static const size_t sizes[] = {10, 20 * KIB, 32 * KIB - 1, 32 * KIB, 50 * KIB, 500 * KIB, 5 * MIB, 70 * MIB};
#define COUNT (sizeof sizes / sizeof *sizes)

int main(void) {
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < COUNT; j++)
            for (int zeroed = 0; zeroed < 2; zeroed++) {
                size_t from = sizes[i], to = sizes[j], least = from < to ? from : to;
                char *block = zeroed ? calloc(1, from) : malloc(from);
                CHECK(block);
                fill(block, from, (unsigned char)(i + j));
                errno = 4711;
                block = realloc(block, to);
                CHECK(block && errno == 4711 && malloc_usable_size(block) >= to);
                CHECK(holds(block, least, (unsigned char)(i + j)));
                memset(block, 1, to);
                free(block);
            }

    char *block = realloc(NULL, 100 * KIB);
    CHECK(block);
    fill(block, 100 * KIB, 5);
    block = reallocarray(block, 200, KIB);
    CHECK(block && holds(block, 100 * KIB, 5));
    errno = 4711;
    CHECK(!realloc(block, 0) && errno == 4711);

    /* One block that grows like a buffer, among others that are in its way. */
    size_t length = 100;
    block = malloc(length);
    fill(block, length, 1);
    while (length < 200 * MIB) {
        void *neighbour = malloc(40 * KIB);
        size_t longer = length + length / 2;
        block = realloc(block, longer);
        CHECK(block && holds(block, length, 1));
        fill(block, longer, 1);
        length = longer;
        free(neighbour);
    }
    free(block);

    /* Many blocks of changing sizes. */
    enum { MANY = 64 };
    char *blocks[MANY] = {0};
    size_t lengths[MANY] = {0};
    unsigned random = 1;
    for (int turn = 0; turn < 20000; turn++) {
        random = random * 1664525 + 1013904223;
        unsigned at = (random >> 10) % MANY;
        size_t to = 1 + (random >> 8) % ((random >> 16) % 16 == 0 ? 2 * MIB : 100 * KIB);
        size_t least = lengths[at] < to ? lengths[at] : to;
        blocks[at] = realloc(blocks[at], to);
        CHECK(blocks[at] && (lengths[at] == 0 || holds(blocks[at], least, (unsigned char)at)));
        fill(blocks[at], to, (unsigned char)at);
        lengths[at] = to;
    }
    return 0;
}
