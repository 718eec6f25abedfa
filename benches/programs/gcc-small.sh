#!/bin/sh
# Compiles a small file again and again, so that programs begin and end all the time: `gcc-small.sh [TIMES]`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#include <stdio.h>\nint main(void) { puts("hello"); }\n' >"$folder/small.c"
for _ in $(seq 1 "${1:-40}"); do
    gcc -O1 "$folder/small.c" -o "$folder/small"
    "$folder/small" >/dev/null
done
