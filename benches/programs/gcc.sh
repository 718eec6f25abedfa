#!/bin/sh
# Compiles a file of many functions at -O2: `gcc.sh [FUNCTIONS]`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seq 1 "${1:-200}" | awk 'BEGIN { print "#include <math.h>\n#include <string.h>" } {
    printf "unsigned long f%d(unsigned long x, unsigned n) { double total = x; unsigned long table[%d]; memset(table, 0, sizeof table);\n", $1, 16 + $1 % 48
    printf "for (unsigned i = 0; i < n; i++) switch ((x ^ i) %% 7) { case 0: x = x * %du + i; break; case 1: total += sqrt(i + %d.0); break;\n", 2 * $1 + 3, $1
    printf "case 2: table[i %% %d] ^= x; break; case 3: x += table[i * 3 %% %d]; break; case 4: total = total * 0.5 + i; break; default: x ^= x >> 7; }\n", 16 + $1 % 48, 16 + $1 % 48
    printf "if (n) x += %s; return x + (unsigned long)total %% 1000; }\n", ($1 > 1 ? "f" ($1 - 1) "(x / 2, n / 2)" : "1") }' >"$folder/large.c"
gcc -O2 -g "-fdebug-prefix-map=$folder=." -c "$folder/large.c" -o "$folder/large.o"
cksum <"$folder/large.o"
