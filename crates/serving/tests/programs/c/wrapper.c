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

#ifdef LOCKS
/* As jemalloc: a lock that each call takes, and that is held while the process is copied. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void hold(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }
static _Atomic int begun;
#else
static void hold(void) {}
static void release(void) {}
#endif

static void begin(void) {
#ifdef LOCKS
    if (!begun++) pthread_atfork(hold, release, release);
#endif
}

static void *take(size_t align, size_t bytes) {
    begin();
    if (align < sizeof(struct header)) align = sizeof(struct header);
    if (bytes > PTRDIFF_MAX - 2 * align) {
        errno = ENOMEM;
        return NULL;
    }
    hold();
    char *raw = __libc_memalign(align, bytes + align);
    release();
    if (!raw) return NULL;
    struct header *header = (struct header *)(raw + align) - 1;
    *header = (struct header){raw, bytes, WORD, 0};
    return raw + align;
}

static void give(void *block) {
    if (!block) return;
    struct header *found = header(block);
    found->word = 0;
    hold();
    __libc_free(found->raw);
    release();
}

/* It may begin before Lowtide's library, or with its first block. */
__attribute__((constructor)) static void begins_early(void) {
    if (getenv("BEGINS_EARLY")) begin();
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
