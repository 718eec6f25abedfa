#!/bin/sh
# Values of 100 kB, written and read: `redis.sh [REQUESTS]`, on a socket in a folder of its own.
set -eu
folder=$(mktemp -d)
redis-server --port 0 --unixsocket "$folder/socket" --dir "$folder" --save '' >"$folder/log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
until redis-cli -s "$folder/socket" ping >/dev/null 2>&1; do
    kill -0 "$server"
    sleep 0.1
done
redis-benchmark -s "$folder/socket" -t set,get -d 100000 -r 500 -c 8 -n "${1:-20000}" -q >&2
redis-cli -s "$folder/socket" eval "local digest = '' for key = 0, 499 do
    digest = redis.sha1hex(digest .. (redis.call('get', string.format('key:%012d', key)) or '')) end return digest" 0
redis-cli -s "$folder/socket" shutdown nosave
wait "$server"
