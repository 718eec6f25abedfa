//! `PostgreSQL`: a process for each client, all forked from one, and queries that sort and hash in memory.

use std::path::PathBuf;
use std::{fs, iter};

use lowtide_testing::{programs, thorough};

use crate::trial::{Server, Trial, wait_until};

/// Where packages put the programs of the server: the newest first.
fn folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut versions: Vec<PathBuf> = versions.collect();
    versions.sort();
    versions.into_iter().rev().map(|version| version.join("bin")).chain(iter::once("/usr/pgsql/bin".into())).collect()
}

/// All sums are the same where no transaction was lost or done by half.
const BALANCES: &str = "select count(distinct total) from (select sum(abalance) as total from pgbench_accounts union all \
    select sum(bbalance) from pgbench_branches union all select sum(tbalance) from pgbench_tellers union all \
    select coalesce(sum(delta), 0) from pgbench_history) as totals";

/// Rows that a sort in memory has left out of order, and how many rows there are.
const SORT: &str = "select count(*) filter (where words < before), count(*) from (select words, lag(words) over (order by \
    words) as before from (select md5(aid::text) || repeat('x', 50) as words from pgbench_accounts) as made) as sorted";

/// Groups and a join by hashing, whose sums are known.
const HASH: &str = "select count(*), sum(many) from (select a.aid % 50021 as bin, count(*) as many from pgbench_accounts a \
    join pgbench_accounts b on a.aid = b.aid group by 1) as bins";

#[test]
fn transactions_add_up_and_queries_in_much_memory_are_right() {
    if !thorough() {
        return;
    }
    let names = ["postgres", "initdb", "pgbench", "psql", "pg_ctl", "pg_checksums"];
    let Some([postgres, initdb, pgbench, psql, control, checksums]) = programs(names, &folders()) else { return };
    let trial = Trial::not_as_root();
    trial.run(initdb, &["-D", "data", "-U", "tester", "-A", "trust", "-N", "-k", "--locale=C"]);
    let folder = trial.path("");
    let folder = folder.to_str().unwrap();
    let mut command = trial.command(postgres);
    command.args(["-D", "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "jit=off"]);
    command.args(["-c", "work_mem=64MB", "-c", "shared_buffers=32MB", "-c", "max_parallel_workers_per_gather=2"]);
    let server = Server::start(&mut command, &trial.path("log"));
    let to = ["-h", folder, "-U", "tester"];
    let ask = |query: &str| {
        let arguments =
            [&to[..], &["-d", "postgres", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", query]].concat();
        trial.run(&psql, &arguments).trim().to_owned()
    };
    let is_ready =
        || trial.bare(&psql).args(to).args(["-d", "postgres", "-c", "select 1"]).output().unwrap().status.success();
    wait_until("ready", is_ready);

    trial.run(&pgbench, &[&to[..], &["-i", "-s", "3", "-q", "postgres"]].concat());
    let told = trial.run(&pgbench, &[&to[..], &["-c", "4", "-j", "2", "-T", "4", "-n", "postgres"]].concat());
    assert!(told.contains("number of failed transactions: 0 "), "{told}");
    assert_eq!(ask(BALANCES), "1");
    assert_eq!(ask(SORT), "0|300000");
    assert_eq!(ask(HASH), "50021|300000");
    let digest = "select md5(string_agg(aid || ':' || abalance, ',' order by aid)) from pgbench_accounts";
    assert_eq!(ask(digest), ask(&format!("set work_mem = '64kB'; {digest}")));
    assert_eq!(ask("select length(string_agg(repeat('y', 84), '')) from pgbench_accounts"), (300_000 * 84).to_string());

    trial.run(&control, &["-D", "data", "-m", "fast", "-w", "stop"]);
    server.ends_well();
    trial.run(&checksums, &["--check", "-D", "data"]);
    trial.assert_served("postgres");
}
