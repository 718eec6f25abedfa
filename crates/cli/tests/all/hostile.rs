//! Whatever the input, the command ends soon with one error that says where, and what to do.

use std::fs;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lowtide_formats::{Error, Input, PlanFile};

use super::support::{BINARY, Ended, Folder, SMALL};

fn hostile_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/hostile");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 50);
    files
}

fn is_plan(path: &Path) -> bool {
    path.to_string_lossy().contains(".plan.")
}

/// What the reader says of the file.
fn refusal(path: &Path) -> Error {
    let reader = BufReader::new(fs::File::open(path).unwrap());
    if is_plan(path) { PlanFile::read(reader).unwrap_err() } else { Input::read(reader).unwrap_err() }
}

fn assert_refused(ended: &Ended, start: &str) {
    assert_eq!(ended.code, Some(2), "{start}: {}", ended.talk);
    assert_eq!(ended.data, "", "{start}");
    let lines: Vec<&str> = ended.talk.lines().collect();
    assert!(lines[0].starts_with(&format!("error: {start}: ")), "{start}: {}", ended.talk);
    assert_eq!(lines.iter().filter(|line| line.starts_with("error:")).count(), 1, "{}", ended.talk);
    assert!(lines.last().unwrap().starts_with("hint: "), "{}", ended.talk);
    assert!(!ended.talk.contains("panic") && !ended.talk.contains("internal error"), "{}", ended.talk);
}

#[test]
fn every_hostile_file_is_refused_with_file_row_and_hint() {
    let folder = Folder::with(&[("small.csv", SMALL)]);
    for path in hostile_files() {
        let name = path.to_string_lossy().into_owned();
        let ended = if is_plan(&path) {
            folder.run(&["check", "small.csv", &name])
        } else {
            folder.run(&["plan", &name, "-o", "plan.csv", "--json"])
        };
        let row = refusal(&path).row.map(|row| format!(":{row}")).unwrap_or_default();
        assert_refused(&ended, &format!("{name}{row}"));
    }
    assert_eq!(folder.list(), ["small.csv"]);
}

#[test]
fn stdin_is_named_as_such() {
    let ended = Folder::new().run_with(&["plan"], b"id,lower,upper,size\na,0,1,-5\n");
    assert_refused(&ended, "<stdin>:2");
}

#[test]
fn numbers_of_a_million_digits_are_refused_shortly() {
    let text = format!("id,lower,upper,size\na,0,1,{}\n", "9".repeat(1_000_000));
    let ended = Folder::new().run_with(&["plan", "-"], text.as_bytes());
    assert_refused(&ended, "<stdin>:2");
    assert!(ended.talk.len() < 500, "{}", ended.talk.len());
}

#[test]
fn a_line_without_end_is_left_soon_and_in_little_memory() {
    // 512 MiB of addresses are little more than the threads' stacks; a line that is kept would exceed them.
    let limited = format!("ulimit -v 524288; exec {BINARY} plan -");
    let start = Instant::now();
    let mut child = Command::new("sh")
        .args(["-c", &limited])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let endless = std::thread::spawn(move || while input.write_all(&[b'x'; 8_192]).is_ok() {});
    let output = child.wait_with_output().unwrap();
    endless.join().unwrap();
    let ended = Ended {
        code: output.status.code(),
        data: String::from_utf8(output.stdout).unwrap(),
        talk: String::from_utf8(output.stderr).unwrap(),
    };
    assert_refused(&ended, "<stdin>:1");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
