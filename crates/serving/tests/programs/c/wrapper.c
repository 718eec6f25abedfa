/* An allocator of its own kind, to go below: glibc's blocks behind a header, so that a block that comes back to the wrong
   one is found at once. */
#include "check.h"

extern void __libc_free(void *);
extern void *__libc_memalign(size_t, size_t);

#define WORD 0x6c6f77746964652eUL

struct header {
    void *raw;
    size_t bytes, word, unused;
};

static struct header *header(void *block) {
    struct header *header = (struct header *)block - 1;
    if (header->word != WORD) {
        static const char text[] = "wrapper: a block of another allocator\n";
        (void)!write(2, text, sizeof text - 1);
        abort();
    }
    return header;
}

static void *take(size_t align, size_t bytes) {
    if (align < sizeof(struct header)) align = sizeof(struct header);
    if (bytes > PTRDIFF_MAX - 2 * align) {
        errno = ENOMEM;
        return NULL;
    }
    char *raw = __libc_memalign(align, bytes + align);
    if (!raw) return NULL;
    struct header *header = (struct header *)(raw + align) - 1;
    *header = (struct header){raw, bytes, WORD, 0};
    return raw + align;
}

static void give(void *block) {
    if (!block) return;
    struct header *found = header(block);
    found->word = 0;
    __libc_free(found->raw);
}

/* None of these calls another by its name, which would lead to whoever comes first. */
void *memalign(size_t align, size_t bytes) { return take(align, bytes); }
void *malloc(size_t bytes) { return take(0, bytes); }
/* As tcmalloc and mimalloc have it: the name does not tell that it is glibc's. */
void *__libc_malloc(size_t bytes) { return take(0, bytes); }
void free(void *block) { give(block); }
/* A way to its blocks that nobody stands in. */
void *wrapper_take(size_t bytes) { return take(0, bytes); }
size_t malloc_usable_size(void *block) { return block ? header(block)->bytes : 0; }

void *calloc(size_t count, size_t bytes) {
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = take(0, total);
    return block ? memset(block, 0, total) : NULL;
}

void *realloc(void *block, size_t bytes) {
    if (!block) return take(0, bytes);
    if (!bytes) {
        give(block);
        return NULL;
    }
    size_t old = header(block)->bytes;
    void *moved = take(0, bytes);
    if (moved) {
        memcpy(moved, block, old < bytes ? old : bytes);
        give(block);
    }
    return moved;
}
