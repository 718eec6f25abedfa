/* Opens a library in the middle of its work and trades blocks with it, in several threads. */
#include "check.h"
#include <dlfcn.h>

static void *(*give)(size_t);
static void (*take)(void *);

static void *trade(void *unused) {
    (void)unused;
    for (int i = 0; i < 200; i++) {
        free(give(50 * KIB));
        take(malloc(60 * KIB));
        take(malloc(60));
    }
    return NULL;
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    void *block = malloc(100 * KIB);
    pthread_t threads[2];
    for (int turn = 0; turn < 20; turn++) {
        void *library = dlopen(arguments[1], RTLD_NOW);
        CHECK(library);
        give = (void *(*)(size_t))dlsym(library, "give");
        take = (void (*)(void *))dlsym(library, "take");
        CHECK(give && take);
        for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, trade, NULL) == 0);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        dlclose(library);
    }
    free(block);
    return 0;
}
