/* Opens a library by its bare name with RTLD_DEEPBIND; only this program's own search path leads to it. */
#include "check.h"
#include <dlfcn.h>

int main(void) {
    for (int turn = 0; turn < 3; turn++) {
        void *library = dlopen("libdeep.so", RTLD_NOW | RTLD_DEEPBIND);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        int (*deep)(void) = (int (*)(void))dlsym(library, "deep");
        CHECK(deep && deep() == 0);
        dlclose(library);
    }
    CHECK(!dlopen("libnowhere.so", RTLD_NOW) && dlerror());
    return 0;
}
