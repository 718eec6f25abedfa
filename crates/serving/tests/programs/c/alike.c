/* Prints what the C library answers where it is asked for something odd; with the library and without, that is the same. */
#include "check.h"

int main(void) {
    for (size_t align = 24; align <= 96; align += 24) {
        errno = 0;
        char *block = aligned_alloc(align, 100 * KIB);
        printf("%zu %d %d\n", align, block != NULL, errno);
        free(HIDE(block));
    }
    struct mallinfo2 before = mallinfo2();
    char *blocks[20];
    for (int i = 0; i < 20; i++) blocks[i] = malloc(MIB);
    struct mallinfo2 after = mallinfo2();
    size_t more = after.hblkhd + after.uordblks - before.hblkhd - before.uordblks;
    printf("%d\n", more >= 20 * MIB && more < 21 * MIB);
    for (int i = 0; i < 20; i++) free(HIDE(blocks[i]));
    after = mallinfo2();
    printf("%d\n", after.hblkhd + after.uordblks < before.hblkhd + before.uordblks + MIB);
    /* More than any machine has. */
    errno = 0;
    char *huge = malloc(1UL << 44);
    printf("%d %d\n", huge != NULL, errno);
    return 0;
}
