#!/bin/sh
# Fills a database of 300,000 rows, with an index, sorts, joins and deletes, in memory and in a file: `sqlite.sh [ROWS]`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for database in ':memory:' "$folder/database"; do
    sqlite3 -bail -batch "$database" <<END
.output /dev/null
pragma cache_size = -65536;
pragma temp_store = memory;
pragma synchronous = off;
.output
create table item (id integer primary key, family integer, price real, name text, content blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < ${1:-300000})
insert into item select i, i * 48271 % 1009, i * 16807 % 99991 / 100.0, printf('item %x', i * 69621 % 2147483647), zeroblob(i % 300) from n;
create index item_by_name on item (name, price);
create table family as select family as id, count(*) as items, avg(price) as price from item group by family;
select count(*), sum(items), round(sum(price), 3) from family;
select name, rank from (select name, rank() over (partition by family order by price desc, name) as rank from item) order by rank desc, name limit 5;
select count(*) from item join family on family.id = item.family where item.price > family.price and item.name like '%a';
select count(*), sum(length(names)) from (select group_concat(name) as names from (select family, name from item order by name desc) group by family);
delete from item where family % 3 = 0;
update item set content = zeroblob(id % 4000) where family % 7 = 1;
vacuum;
select count(*), sum(length(content)) from item;
pragma integrity_check;
END
done
