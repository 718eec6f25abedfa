/* Stands in for the library that serves, of another version. With SLOW, it takes its time to be opened. */
#include <unistd.h>

#ifdef SLOW
__attribute__((constructor)) static void begin(void) { usleep(300000); }
#endif

int lowtide_attach(const void *opening) {
    (void)opening;
    return 1;
}
