/* A program that has the system kill it for calls that it does not make itself: it goes on allocating. */
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define KILLS(number)                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),          \
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILLS(SYS_openat), KILLS(SYS_clone), KILLS(SYS_clone3), KILLS(SYS_mincore), KILLS(SYS_madvise),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        puts("not allowed");
        return 0;
    }
    static char *blocks[64];
    for (size_t turn = 0; turn < 20000; turn++) {
        char **place = &blocks[turn * 7 % 64];
        free(HIDE(*place));
        size_t bytes = 33 * KIB + turn * 7919 % MIB;
        CHECK((*place = malloc(bytes)));
        (*place)[0] = (*place)[bytes - 1] = 1;
    }
    return 0;
}
