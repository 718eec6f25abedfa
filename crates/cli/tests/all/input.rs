//! What verbs are given: nothing on a terminal, folders, files of other programs, and sizes as people write them.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

use nix::pty::openpty;

use super::support::{BINARY, Folder, SMALL, lowtide};

#[test]
fn every_verb_that_reads_says_so_on_a_terminal() {
    for verb in ["plan", "explain", "report", "replay"] {
        let terminal = openpty(None, None).unwrap();
        let child = Command::new(BINARY)
            .arg(verb)
            .env("NO_COLOR", "1")
            .stdin(Stdio::from(terminal.slave))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Ctrl-D on an empty line is the end.
        let mut keys = File::from(terminal.master);
        keys.write_all(&[4]).unwrap();
        let output = child.wait_with_output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{verb}: {talk}");
        let words = "reading from the terminal; Ctrl-D ends it, and a file can be given instead\n\
                     error: <stdin>: the file is empty\n";
        assert!(talk.starts_with(words), "{verb}: {talk}");
    }
}

#[test]
fn what_is_no_input_gets_a_hint_of_its_own() {
    let folder = Folder::with(&[("semicolons.csv", "id;lower;upper;size\na;0;4;8\n")]);
    std::fs::create_dir(folder.at("folder")).unwrap();
    folder.write("program", b"\x7fELF\x02\x01\x01\0\0\0");
    folder.write("packed.zst", b"\x28\xb5\x2f\xfd\x04\x00");
    for (file, words, hint) in [
        ("folder", "Is a directory", "hint: this is a folder; give one of the files in it"),
        ("program", "this is a program or a library", "hint: `lowtide record -- COMMAND` runs a program"),
        ("packed.zst", "this is compressed by zstd", "hint: decompress it first"),
        ("semicolons.csv", "the columns are separated by semicolons", "hint: write commas"),
    ] {
        for verb in ["plan", "explain", "report", "replay"] {
            let ended = folder.run(&[verb, file]);
            assert_eq!(ended.code, Some(2), "{verb} {file}");
            assert!(ended.talk.contains(words) && ended.talk.contains(hint), "{verb} {file}: {}", ended.talk);
        }
    }
}

#[test]
fn a_gpu_is_an_amount_of_memory_wherever_one_is_asked_for() {
    let trace = "event,id,bytes,stream\nalloc,a,4096,0\nfree,a,,\nstep,1,,\n";
    let folder = Folder::with(&[("t.csv", trace), ("l.csv", SMALL)]);
    let ended = folder.run(&["replay", "t.csv", "--device-memory", "H100"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.data.starts_with("all 4 fit in 78.6 GiB"), "{}", ended.data);
    assert!(ended.talk.contains("lowtide replay t.csv --device-memory H100 --sweep"), "{}", ended.talk);
    let json = folder.run(&["plan", "l.csv", "--capacity", "nvidia h200", "--json"]).json();
    assert_eq!(json["capacity"].as_u64(), Some((143_771 << 20) - (1 << 30)));
    let ended = folder.run(&["estimate", "l.csv", "--memory", "K80"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.talk.contains("`K80` is neither an amount of memory"), "{}", ended.talk);
}

#[test]
fn hints_repeat_sizes_as_they_were_typed() {
    let folder = Folder::with(&[("l.csv", SMALL)]);
    let ended = folder.run(&["plan", "l.csv", "--capacity", "11GiB", "--align", "0.5KiB"]);
    let next = "next: `lowtide plan l.csv --align 0.5KiB --capacity 11GiB -o plan.csv`\n";
    assert!(ended.talk.ends_with(next), "{}", ended.talk);
}

#[test]
fn tables_and_charts_are_as_wide_as_columns_says() {
    let trace = "event,id,bytes,stream\nalloc,a,4096,0\nalloc,b,8192,0\nfree,a,,\nstep,1,,\nfree,b,,\n";
    let folder = Folder::with(&[("t.csv", trace), ("u.csv", trace), ("l.csv", SMALL)]);
    for arguments in [
        &["replay", "t.csv"][..],
        &["report", "t.csv"],
        &["explain", "t.csv"],
        &["plan", "l.csv"],
        &["bench", "plan", "l.csv"],
        &["demo"],
    ] {
        let command = |columns: &str| {
            let mut command = lowtide(arguments);
            let output = command.current_dir(folder.path()).env("COLUMNS", columns).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let narrow = command("60");
        let longest = narrow.lines().map(|line| line.chars().count()).max().unwrap();
        assert!((30..=60).contains(&longest), "{arguments:?}: {longest}\n{narrow}");
        assert!(narrow.contains("150") || narrow.contains("iB"), "{narrow}");
    }
}
