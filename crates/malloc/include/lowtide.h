/* What a program may tell Lowtide's library under its malloc. Without the library these are null, and the program is the same:
 *
 *     if (lowtide_step) lowtide_step();
 */
#ifndef LOWTIDE_H
#define LOWTIDE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A step of the program is over: the next allocation begins another. */
void lowtide_step(void) __attribute__((weak));

/* The program will call `lowtide_step`: its large blocks are served from now on, without waiting for the first step. */
void lowtide_expect_steps(void) __attribute__((weak));

/* Gives all memory back that no large block holds, and says how many bytes that were. */
size_t lowtide_trim(void) __attribute__((weak));

/* Names this moment, for `lowtide watch` and the summary. */
void lowtide_mark(const char *name) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
