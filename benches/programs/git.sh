#!/bin/sh
# Packs a repository anew with all its likenesses looked for: `git.sh [FOLDER]`, which is made where it is not there.
set -eu
folder=${1:-${TMPDIR:-/tmp}/lowtide-programs-git}
if [ ! -d "$folder" ]; then
    mkdir -p "$folder"
    git -C "$folder" init -q
    for version in 1 2 3 4; do
        for file in 1 2 3 4 5 6 7 8; do
            seq 1 20000 | awk -v f="$file" -v v="$version" '{ print f, $1, ($1 * 7 + f) % 97 ? "same" : "version " v, $1 * 48271 % 2147483647 }' >"$folder/$file.txt"
        done
        git -C "$folder" add -A
        git -C "$folder" -c user.name=tester -c user.email=tester@localhost commit -q -m "version $version"
    done
fi
git -C "$folder" repack -adfq --threads=1 --window=100 --depth=50
git -C "$folder" fsck --full --strict
git -C "$folder" ls-tree -r HEAD
