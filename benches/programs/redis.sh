#!/bin/sh
# Values of 100 kB, written and read: `redis.sh [REQUESTS]`, on a socket in a folder of its own.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
redis-server --port 0 --unixsocket "$folder/socket" --dir "$folder" --save '' >"$folder/log" &
until redis-cli -s "$folder/socket" ping >/dev/null 2>&1; do sleep 0.1; done
redis-benchmark -s "$folder/socket" -t set,get -d 100000 -r 500 -c 8 -n "${1:-20000}" -q >&2
redis-cli -s "$folder/socket" shutdown nosave
wait
