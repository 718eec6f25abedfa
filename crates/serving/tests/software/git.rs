//! git, whose packing looks for likenesses in several threads and large windows.

#![expect(clippy::unwrap_used, reason = "a test may end here")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use lowtide_testing::{programs, thorough};

use crate::trial::Trial;

/// Lines that differ from file to file and change a little from version to version.
fn text(file: usize, version: usize, lines: usize) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let changed = if (line * 7 + file).is_multiple_of(97) { version } else { 0 };
        writeln!(text, "file {file} line {line} is {} in version {changed}", line.wrapping_mul(2_654_435_761) ^ file)
            .unwrap();
    }
    text
}

fn write(folder: &Path, version: usize) {
    fs::create_dir_all(folder.join("small")).unwrap();
    for file in 0..400 {
        fs::write(folder.join(format!("small/{file}.txt")), text(file, version, 20)).unwrap();
    }
    for file in 0..8 {
        fs::write(folder.join(format!("{file}.txt")), text(file, version, 8000)).unwrap();
    }
}

#[test]
fn a_repository_that_was_packed_anew_is_whole_and_clones() {
    if !thorough() {
        return;
    }
    let Some([git]) = programs(["git"], &[]) else { return };
    let trial = Trial::new();
    let run = |folder: &str, arguments: &[&str]| {
        let identity = ["-c", "user.name=tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgsign=false"];
        let place = trial.path(folder);
        trial.run(&git, &[&["-C", place.to_str().unwrap(), "-c", "gc.auto=0"], &identity[..], arguments].concat())
    };
    fs::create_dir(trial.path("origin")).unwrap();
    run("origin", &["init", "-q"]);
    for version in 0..4 {
        write(&trial.path("origin"), version);
        run("origin", &["add", "-A"]);
        run("origin", &["commit", "-q", "-m", &format!("version {version}")]);
    }
    run("origin", &["repack", "-adfq", "--threads=2", "--window=20", "--depth=50"]);
    run("origin", &["fsck", "--full", "--strict"]);
    assert_eq!(run("origin", &["diff", "--stat", "HEAD"]), "");

    run("", &["clone", "-q", "--no-local", "origin", "copy"]);
    run("copy", &["fsck", "--full"]);
    assert_eq!(run("copy", &["rev-parse", "HEAD"]), run("origin", &["rev-parse", "HEAD"]));
    assert_eq!(run("copy", &["status", "--porcelain"]), "");
    for file in ["0.txt", "7.txt", "small/399.txt"] {
        assert!(fs::read(trial.path("origin").join(file)).unwrap() == fs::read(trial.path("copy").join(file)).unwrap());
    }
    assert!(run("copy", &["log", "-p", "--stat"]).len() > 1 << 20);
    trial.assert_served("git");
}
