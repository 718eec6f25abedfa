/* A thread gives memory back, or closes its first steps, while another is inside `dlopen`, where it will allocate. */
#include "check.h"
#include "lowtide.h"
#include <dlfcn.h>

static const char *plugin;

static void *open_plugin(void *unused) {
    (void)unused;
    CHECK(dlopen(plugin, RTLD_NOW));
    return NULL;
}

static void *trim(void *used) {
    if (used) free(HIDE(malloc(100 * KIB)));
    usleep(100000);
    malloc_trim(0);
    return NULL;
}

static void steps(unsigned pause) {
    for (int i = 0; i < 20; i++) {
        free(HIDE(malloc(3 * MIB)));
        free(HIDE(malloc(64 * MIB)));
        lowtide_step();
        usleep(pause);
    }
}

int main(int count, char **arguments) {
    CHECK(count == 3 && lowtide_step);
    plugin = arguments[1];
    pthread_t thread;
    alarm(20);
    if (strcmp(arguments[2], "steps") == 0) {
        free(HIDE(malloc(8 * MIB)));
        free(HIDE(malloc(MIB)));
        CHECK(pthread_create(&thread, NULL, open_plugin, NULL) == 0);
        usleep(100000);
        steps(5000);
    } else {
        int used = strcmp(arguments[2], "trim again") == 0;
        steps(30000);
        CHECK(HIDE(malloc(3 * MIB)));
        CHECK(pthread_create(&thread, NULL, trim, used ? &used : NULL) == 0);
        open_plugin(NULL);
    }
    pthread_join(thread, NULL);
    return 0;
}
