#!/bin/sh
# Transactions of pgbench, a number of them, and a sort in memory: `postgres.sh [TRANSACTIONS]`, not as root.
set -eu
PATH=$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PGHOST="$folder" PGUSER=tester PGDATABASE=postgres
{
    initdb -D "$folder/data" -U tester -A trust -N --locale=C
    postgres -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off -c work_mem=64MB &
    until psql -c 'select 1' 2>/dev/null; do sleep 0.1; done
    pgbench -i -s 3 -q
    pgbench -n -c 4 -j 2 -t "$((${1:-8000} / 4))"
    for _ in 1 2 3; do
        psql -c "select count(*) from (select aid, md5(aid::text) as words from pgbench_accounts order by 2 offset 1) as sorted"
    done
    pg_ctl -D "$folder/data" -m fast -w stop
    wait
} >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
