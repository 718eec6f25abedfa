#!/bin/sh
# Transactions of pgbench, a number of them, and a sort in memory: `postgres.sh [TRANSACTIONS]`, not as root.
set -eu
PATH=$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)
folder=$(mktemp -d)
exec 3>&1 4>&2 >"$folder/log" 2>&1
end() {
    if [ "$1" != 0 ]; then
        pg_ctl -D "$folder/data" -m immediate stop || true
        cat "$folder/log" >&4
    fi
    rm -rf "$folder"
}
trap 'end $?' EXIT
export PGHOST="$folder" PGUSER=tester PGDATABASE=postgres
initdb -D "$folder/data" -U tester -A trust -N --locale=C
postgres -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off -c work_mem=64MB &
server=$!
until psql -c 'select 1' 2>/dev/null; do
    kill -0 "$server"
    sleep 0.1
done
pgbench -i -s 3 -q
pgbench -n -c 4 -j 2 -t "$((${1:-8000} / 4))"
for _ in 1 2 3; do
    psql -c "select count(*) from (select aid, md5(aid::text) as words from pgbench_accounts order by 2 offset 1) as sorted"
done
psql -At >&3 <<'END'
select count(*) from pgbench_history;
select (select sum(abalance) from pgbench_accounts) = sum(tbalance) from pgbench_tellers;
select (select sum(delta) from pgbench_history) = sum(bbalance) from pgbench_branches;
select md5(string_agg(words, '' order by words)) from (select md5(aid::text) as words from pgbench_accounts) as accounts;
END
pg_ctl -D "$folder/data" -m fast -w stop
wait "$server"
