/* Opened with RTLD_DEEPBIND: frees with its own `free` what the C library allocated with the program's. */
#include "check.h"

int deep(void) {
    char *text = NULL;
    if (asprintf(&text, "%d", 4711) < 0) return 1;
    free(text);
    text = strdup("text");
    free(text);
    return 0;
}
