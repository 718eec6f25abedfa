//! Redis, which forks to save and is linked with an allocator of its own on some systems.

#![expect(clippy::unwrap_used, reason = "a test may end here")]

use std::fs::{self, File};
use std::path::Path;

use lowtide_core::random::Random;
use lowtide_testing::{programs, thorough};

use crate::trial::{Server, Trial, printed, wait_until, well};

/// A server in a trial's folder, and how to talk to it.
struct Redis<'a> {
    trial: &'a Trial,
    client: &'a Path,
    server: Server,
}

impl<'a> Redis<'a> {
    fn start(trial: &'a Trial, server: &Path, client: &'a Path) -> Self {
        let mut command = trial.command(server);
        command.args(["--port", "0", "--unixsocket", "socket", "--save", "", "--dbfilename", "dump"]);
        let server = Server::start(&mut command, &trial.path("log"));
        let redis = Self { trial, client, server };
        wait_until("ready", || printed(&redis.client().arg("ping").output().unwrap()).trim() == "PONG");
        redis
    }

    fn client(&self) -> std::process::Command {
        let mut command = self.trial.command(self.client);
        command.args(["-s", "socket"]);
        command
    }

    fn ask(&self, words: &[&str]) -> String {
        printed(&well(self.client().args(words))).trim_end().to_owned()
    }

    /// Writes a value, and reads it back.
    fn keep(&self, key: &str, value: &[u8]) {
        let file = self.trial.path(key);
        fs::write(&file, value).unwrap();
        let mut command = self.client();
        assert_eq!(printed(&well(command.args(["-x", "set", key]).stdin(File::open(file).unwrap()))).trim(), "OK");
        self.assert_keeps(key, value);
    }

    fn assert_keeps(&self, key: &str, value: &[u8]) {
        let output = well(self.client().args(["--raw", "get", key]));
        assert!(output.stdout.strip_suffix(b"\n") == Some(value), "{key} came back as {} bytes", output.stdout.len());
    }

    fn stop(self, how: &str) {
        let _ = self.client().args(["shutdown", how]).output().unwrap();
        self.server.ends_well();
    }
}

/// Bytes that do not repeat soon.
fn value(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..bytes).map(|_| b'a' + random.below(26) as u8).collect()
}

#[test]
fn values_come_back_and_survive_a_save_in_a_fork_and_a_restart() {
    if !thorough() {
        return;
    }
    let Some([server, client, benchmark]) = programs(["redis-server", "redis-cli", "redis-benchmark"], &[]) else {
        return;
    };
    let trial = Trial::new();
    let redis = Redis::start(&trial, &server, &client);
    let values: Vec<(String, Vec<u8>)> = [100_000, 1_000_000, 40_000, 5_000_000]
        .into_iter()
        .enumerate()
        .map(|(number, bytes)| (format!("value-{number}"), value(bytes, number as u64)))
        .collect();
    for (key, value) in &values {
        redis.keep(key, value);
    }
    for (bytes, requests) in [("100000", "3000"), ("1000000", "300")] {
        let arguments = ["-s", "socket", "-t", "set,get", "-d", bytes, "-n", requests, "-r", "50", "-c", "8", "-q"];
        let told = trial.run(&benchmark, &arguments);
        assert!(told.contains("SET") && told.contains("GET"), "{told}");
    }
    // A value that grows by pieces, while another process is forked off to save.
    assert!(redis.ask(&["bgsave"]).contains("started"));
    let mut grown = Vec::new();
    for number in 0..40 {
        let piece = value(50_000, number);
        grown.extend(&piece);
        redis.ask(&["append", "grown", &String::from_utf8(piece).unwrap()]);
    }
    wait_until("saved", || redis.ask(&["info", "persistence"]).contains("rdb_bgsave_in_progress:0"));
    assert!(redis.ask(&["info", "persistence"]).contains("rdb_last_bgsave_status:ok"));
    redis.assert_keeps("grown", &grown);
    let keys = redis.ask(&["dbsize"]);
    redis.stop("save");

    let redis = Redis::start(&trial, &server, &client);
    assert_eq!(redis.ask(&["dbsize"]), keys);
    for (key, value) in values.iter().map(|(key, value)| (&**key, value)).chain([("grown", &grown)]) {
        redis.assert_keeps(key, value);
    }
    redis.stop("nosave");
    trial.assert_served("redis-server");
}
