#!/bin/sh
# Packs and unpacks a text of some 70 MB, fast, well, and with a long window and two threads: `zstd.sh [LINES]`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seq 1 "${1:-1500000}" | awk '{ print $1, $1 * 48271 % 65521, "line", $1 * 16807 % 9973, ($1 % 7 ? "as before" : $1 * 69621 % 2147483647) }' >"$folder/text"
head -c 8000000 "$folder/text" >"$folder/part"
zstd -q -3 "$folder/text" -o "$folder/fast.zst"
zstd -q -16 "$folder/part" -o "$folder/well.zst"
zstd -q -6 --long=27 -T2 "$folder/text" -o "$folder/long.zst"
cat "$folder"/*.zst | cksum
zstd -q -d -c "$folder/fast.zst" | cmp - "$folder/text"
zstd -q -d -c "$folder/well.zst" | cmp - "$folder/part"
zstd -q -d -c --long=27 "$folder/long.zst" | cmp - "$folder/text"
