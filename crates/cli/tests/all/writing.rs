//! Outputs are there in full or not at all, and never in place of an input.

use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::support::{BINARY, Folder, SMALL, hard};

#[test]
fn a_table_is_written_with_its_own_rows_and_offsets() {
    let text = "note,id,lower,upper,size\r\n\"x, y\",a,0,4,100\r\n,b,2,8,50\r\n";
    let folder = Folder::with(&[("in.csv", text)]);
    let ended = folder.run(&["plan", "in.csv", "-o", "plan.csv", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert_eq!(ended.json()["peak"], json!(150), "stdout has what `--format` says");
    let written = folder.read("plan.csv");
    assert!(written.starts_with("note,id,lower,upper,size,offset\r\n\"x, y\",a,0,4,100,"), "{written}");
    assert_eq!(ended.talk, "wrote plan.csv; next: `lowtide check in.csv plan.csv`\n");
    assert_eq!(folder.run(&["check", "in.csv", "plan.csv"]).code, Some(0));
    assert_eq!(folder.list(), ["in.csv", "plan.csv"]);
}

#[test]
fn a_plan_is_written_as_json_with_its_headline() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    assert_eq!(folder.run(&["plan", "in.csv", "-o", "plan.json", "--format", "csv"]).code, Some(0));
    let plan: serde_json::Value = serde_json::from_str(&folder.read("plan.json")).unwrap();
    assert_eq!((&plan["kind"], &plan["peak"], &plan["naive"]), (&json!("plan"), &json!(150), &json!(250)));
    assert_eq!(plan["buffers"].as_array().unwrap().len(), 3);
    let ended = folder.run(&["check", "in.csv", "plan.json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.data);
}

#[test]
fn the_input_is_never_written_over() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    let ended = folder.run(&["plan", "in.csv", "-o", "./in.csv"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.talk.starts_with("error: ./in.csv: this is also the input"), "{}", ended.talk);
    assert_eq!(folder.read("in.csv"), SMALL);
}

#[test]
fn an_output_that_cannot_be_is_refused_before_any_work() {
    let folder = Folder::new();
    folder.write("hard.csv", &hard(2_000, 400));
    std::fs::create_dir(folder.at("folder.csv")).unwrap();
    for output in ["plan.txt", "plan", "plan.csv.gz", "no/such/folder/plan.csv", "folder.csv"] {
        let ended = folder.run(&["plan", "hard.csv", "-o", output, "--time-limit", "600"]);
        assert_eq!(ended.code, Some(2), "{output}");
        let start = format!("error: {output}: ");
        assert!(ended.talk.starts_with(&start) && ended.talk.contains("\nhint: "), "{}", ended.talk);
    }
    assert_eq!(folder.list(), ["folder.csv", "hard.csv"]);
}

#[test]
fn a_write_that_fails_half_way_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.write("in.csv", &hard(2_000, 10));
    for output in ["plan.csv", "plan.json"] {
        let limited = format!("trap '' XFSZ; ulimit -f 8; exec {BINARY} plan in.csv -o {output} --time-limit 0");
        let ended = Command::new("sh").args(["-c", &limited]).current_dir(folder.path()).output().unwrap();
        let talk = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{talk}");
        assert!(talk.contains(&format!("error: {output}: cannot write: ")), "{talk}");
        assert_eq!(folder.list(), ["in.csv"]);
    }
}

/// Plans a large problem, which is written to `out`.
fn plan_to(folder: &Folder, out: Stdio) -> Child {
    folder.write("in.csv", &hard(20_000, 10));
    Command::new(BINARY)
        .args(["plan", "in.csv", "--format", "csv", "--time-limit", "0"])
        .current_dir(folder.path())
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_full_stdout_is_an_error() {
    let folder = Folder::new();
    let full = match std::fs::OpenOptions::new().write(true).open("/dev/full") {
        Ok(full) => full,
        Err(error) => return lowtide_testing::skip(&format!("/dev/full: {error}")),
    };
    let ended = plan_to(&folder, full.into()).wait_with_output().unwrap();
    let talk = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(talk.starts_with("error: <stdout>: cannot write: "), "{talk}");
}

#[test]
fn a_closed_stdout_is_no_error() {
    let folder = Folder::new();
    let mut child = plan_to(&folder, Stdio::piped());
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(0), &b""[..]));
}

#[test]
fn endings_are_read_in_any_case_and_others_are_refused_with_a_way_out() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    for name in ["Plan.CSV", "plan.Json"] {
        let ended = folder.run(&["plan", "in.csv", "-o", name]);
        assert_eq!(ended.code, Some(0), "{}", ended.talk);
        assert_eq!(folder.run(&["check", "in.csv", name]).code, Some(0), "{name}");
    }
    for (name, hint) in [("-", "`--format csv`"), ("x.csv.gz", "outputs are not compressed"), ("x.txt", "plan.csv")] {
        let ended = folder.run(&["plan", "in.csv", "-o", name]);
        assert_eq!((ended.code, &*ended.data), (Some(2), ""), "{name}");
        assert!(ended.talk.lines().nth(1).unwrap().contains(hint), "{}", ended.talk);
    }
    assert_eq!(folder.list(), ["Plan.CSV", "in.csv", "plan.Json"]);
}
