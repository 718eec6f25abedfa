/* The family as glibc documents it, on both sides of the border, with errno. */
#include "check.h"

static const size_t sizes[] = {1, 100, 32 * KIB - 1, 32 * KIB, 32 * KIB + 1, 100 * KIB, 3 * MIB, 40 * MIB};
#define COUNT (sizeof sizes / sizeof *sizes)

static void plain(void) {
    for (size_t i = 0; i < COUNT; i++) {
        errno = 4711;
        char *block = HIDE(malloc(sizes[i]));
        CHECK(block && (uintptr_t)block % 16 == 0);
        CHECK(malloc_usable_size(block) >= sizes[i]);
        memset(block, 1, malloc_usable_size(block));
        free(block);
        block = HIDE(calloc(sizes[i], 1));
        CHECK(block && is_zero(block, sizes[i]));
        memset(block, 2, sizes[i]);
        free(block);
        block = HIDE(calloc(1, sizes[i]));
        CHECK(block && is_zero(block, sizes[i]));
        free(block);
        CHECK(errno == 4711);
    }
    free(NULL);
    CHECK(malloc_usable_size(NULL) == 0);
    void *nothing = HIDE(malloc(0));
    CHECK(nothing);
    free(nothing);
}

static void aligned(void) {
    for (size_t align = 8; align <= 4 * MIB; align *= 2)
        for (size_t i = 0; i < COUNT; i++) {
            void *block = NULL;
            errno = 4711;
            CHECK(posix_memalign(&block, align, sizes[i]) == 0);
            CHECK(block && (uintptr_t)block % align == 0 && malloc_usable_size(block) >= sizes[i]);
            memset(block, 3, sizes[i]);
            free(block);
            block = aligned_alloc(align, sizes[i]);
            CHECK(block && (uintptr_t)block % align == 0);
            free(block);
            block = memalign(align, sizes[i]);
            CHECK(block && (uintptr_t)block % align == 0);
            free(block);
            CHECK(errno == 4711);
        }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < COUNT; i++) {
        void *block = valloc(sizes[i]);
        CHECK(block && (uintptr_t)block % page == 0);
        free(block);
        block = pvalloc(sizes[i]);
        CHECK(block && (uintptr_t)block % page == 0);
        CHECK(malloc_usable_size(block) >= (sizes[i] + page - 1) / page * page);
        free(block);
    }
}

static void refused(void) {
    void *block = (void *)1;
    errno = 4711;
    CHECK(posix_memalign(&block, 3, 100 * KIB) == EINVAL);
    CHECK(posix_memalign(&block, 4, 100 * KIB) == EINVAL);
    CHECK(posix_memalign(&block, 0, 100) == EINVAL);
    CHECK(posix_memalign(&block, 64, SIZE_MAX - 100) == ENOMEM);
    CHECK(posix_memalign(&block, 64, PTRDIFF_MAX) == ENOMEM);
    CHECK(block == (void *)1 && errno == 4711);

    volatile size_t much = SIZE_MAX / 2 + 2;
    errno = 0;
    CHECK(!HIDE(malloc(much)) && errno == ENOMEM);
    errno = 0;
    CHECK(!HIDE(malloc(SIZE_MAX - much % 2)) && errno == ENOMEM);
    errno = 0;
    CHECK(!HIDE(calloc(much, 2)) && errno == ENOMEM);
    errno = 0;
    CHECK(!HIDE(calloc(much, 1)) && errno == ENOMEM);
    char *kept = malloc(100 * KIB);
    fill(kept, 100 * KIB, 9);
    errno = 0;
    CHECK(!HIDE(reallocarray(kept, much, 2)) && errno == ENOMEM);
    errno = 0;
    CHECK(!HIDE(realloc(kept, much)) && errno == ENOMEM);
    CHECK(holds(kept, 100 * KIB, 9));
    free(kept);
    errno = 0;
    CHECK(!HIDE(pvalloc(SIZE_MAX - much % 2)) && errno == ENOMEM);
}

int main(void) {
    for (int round = 0; round < 3; round++) {
        plain();
        aligned();
        refused();
    }
    return 0;
}
