//! `lowtide check`: its verdict names the buffers and the rows.

use serde_json::json;

use super::support::{Folder, SMALL};

const GOOD: &str = "id,offset\na,0\nb,100\nc,0\n";

fn folder(plan: &str) -> Folder {
    Folder::with(&[("in.csv", SMALL), ("plan.csv", plan)])
}

#[test]
fn a_plan_that_holds_is_valid() {
    let folder = folder(GOOD);
    let ended = folder.run(&["check", "in.csv", "plan.csv"]);
    let line = "valid: peak 150 B · lower bound 150 B · 1.0000× the bound\n";
    assert_eq!((ended.code, &*ended.data), (Some(0), line));
    let json = folder.run(&["check", "in.csv", "plan.csv", "--json"]).json();
    assert_eq!((&json["version"], &json["valid"], &json["verdict"]), (&json!(1), &json!(true), &json!("valid")));
    assert_eq!((&json["buffers"], &json["rows"], &json["ratio"]), (&json!([]), &json!([]), &json!(1.0)));
    assert_eq!(folder.run_with(&["check", "-", "plan.csv"], SMALL.as_bytes()).code, Some(0));
    assert_eq!(folder.run_with(&["check", "in.csv", "-"], GOOD.as_bytes()).code, Some(0));
}

#[test]
fn an_overlap_is_told_with_both_buffers_and_both_rows() {
    let folder = folder("id,offset\nb,99\nc,0\na,0\n");
    let ended = folder.run(&["check", "in.csv", "plan.csv"]);
    let line = "invalid: buffers `a` and `b` take the same bytes at the same time (plan.csv rows 4 and 2)\n";
    assert_eq!((ended.code, &*ended.data), (Some(1), line));
    let json = folder.run(&["check", "in.csv", "plan.csv", "--json"]);
    assert_eq!((json.code, &json.json()["verdict"]), (Some(1), &json!("overlap")));
    assert_eq!((&json.json()["buffers"], &json.json()["rows"]), (&json!(["a", "b"]), &json!([4, 2])));
}

#[test]
fn a_plan_for_other_buffers_is_a_no_with_id_and_row() {
    for (plan, words) in [
        ("id,offset\na,0\nb,100\n", "the plan has no offset for 1 of the buffers; the first is `c`\n"),
        ("id,offset\na,0\nb,100\nc,0\nd,0\n", "the plan names buffer `d`, which does not exist (plan.csv row 5)\n"),
        ("id,offset\na,0\nb,100\nc,0\na,0\n", "the plan places buffer `a` twice (plan.csv rows 2 and 5)\n"),
    ] {
        let ended = folder(plan).run(&["check", "in.csv", "plan.csv"]);
        assert_eq!((ended.code, ended.data), (Some(1), format!("invalid: {words}")));
    }
}

#[test]
fn a_plan_that_cannot_be_read_is_no_answer_at_all() {
    let ended = folder("id,offset\na,zero\n").run(&["check", "in.csv", "plan.csv"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.talk.starts_with("error: plan.csv:2: `offset` is `zero`"), "{}", ended.talk);
}

#[test]
fn a_plan_for_another_version_of_the_model_does_not_pass() {
    let folder = Folder::with(&[("in.csv", SMALL), ("old.csv", &SMALL.replace("b,2,8,50", "b,3,8,49"))]);
    for plan in ["plan.csv", "plan.json"] {
        assert_eq!(folder.run(&["plan", "old.csv", "-o", plan]).code, Some(0));
        assert_eq!(folder.run(&["check", "old.csv", plan]).code, Some(0), "{plan}");
        let ended = folder.run(&["check", "in.csv", plan]);
        assert_eq!(ended.code, Some(1), "{plan}: {}", ended.data);
        let words = "invalid: buffer `b` is not the one of the problem: in the plan it has size 49 instead of 50, \
                     begins at 3 instead of 2";
        assert!(ended.data.starts_with(words), "{}", ended.data);
        let row = if plan == "plan.csv" { " (plan.csv row 3)\n" } else { " (plan.json entry 2)\n" };
        assert!(ended.data.ends_with(row), "{}", ended.data);
        let json = folder.run(&["check", "in.csv", plan, "--json"]).json();
        assert_eq!((&json["verdict"], &json["buffers"]), (&json!("other-buffer"), &json!(["b"])));
    }
}

#[test]
fn a_plan_of_a_step_matches_that_step() {
    let trace = "event,id,bytes,stream\nalloc,w,64,0\nstep,1,,0\nalloc,x,32,0\nfree,x,,0\nstep,2,,0\n";
    let folder = Folder::with(&[("trace.csv", trace)]);
    for plan in ["plan.csv", "plan.json"] {
        assert_eq!(folder.run(&["plan", "trace.csv", "--step", "2", "-o", plan]).code, Some(0));
        let ended = folder.run(&["check", "trace.csv", plan, "--step", "2"]);
        assert_eq!(ended.code, Some(0), "{}{}", ended.data, ended.talk);
        assert_eq!(folder.run(&["check", "trace.csv", plan]).code, Some(1), "the whole run is another problem");
    }
}

#[test]
fn a_problem_given_as_its_own_plan_hints_at_how_to_make_one() {
    let folder = Folder::with(&[("e.csv", SMALL), ("empty.csv", "id,lower,upper,size,offset\na,0,4,8,\n")]);
    for file in ["e.csv", "empty.csv"] {
        let ended = folder.run(&["check", file, file, "--align", "8"]);
        assert_eq!(ended.code, Some(2));
        let hint = format!("make one with `lowtide plan {file} --align 8 -o plan.csv`\n");
        assert!(ended.talk.ends_with(&hint), "{}", ended.talk);
    }
}

#[test]
fn a_plan_in_front_of_its_problem_is_told_to_go_behind_it() {
    let folder = Folder::with(&[("in.csv", SMALL)]);
    for plan in ["plan.csv", "plan.json"] {
        assert_eq!(folder.run(&["plan", "in.csv", "-o", plan]).code, Some(0));
        let ended = folder.run(&["check", plan, "in.csv"]);
        assert_eq!(ended.code, Some(2));
        let hint = format!("hint: the problem comes first: `lowtide check in.csv {plan}`\n");
        assert!(ended.talk.ends_with(&hint), "{}", ended.talk);
        assert_eq!(folder.run(&["check", "in.csv", plan]).code, Some(0), "the hint does what it says");
    }
}

#[test]
fn a_hint_never_writes_over_the_problem() {
    let folder = Folder::with(&[("plan.csv", SMALL)]);
    let ended = folder.run(&["check", "plan.csv", "plan.csv"]);
    assert!(ended.talk.ends_with("make one with `lowtide plan plan.csv -o new-plan.csv`\n"), "{}", ended.talk);
}

#[test]
fn terms_are_checked_as_they_are_planned() {
    let folder = folder(GOOD);
    let over = folder.run(&["check", "in.csv", "plan.csv", "--capacity", "149"]);
    assert_eq!(over.code, Some(1));
    assert!(over.data.contains("pool `main` needs 150 B, its capacity is 149 B (1 B over)"), "{}", over.data);
    let aligned = folder.run(&["check", "in.csv", "plan.csv", "--align", "64"]);
    assert_eq!(aligned.code, Some(1));
    assert!(
        aligned.data.contains("the offset of buffer `b` is no multiple of 64 (plan.csv row 3)"),
        "{}",
        aligned.data
    );
}

#[test]
fn a_peak_that_is_stated_wrong_is_found() {
    let plan = json!({"kind": "plan", "version": 1, "peak": 149, "buffers": [
        {"id": "a", "offset": 0}, {"id": "b", "offset": 100}, {"id": "c", "offset": 0}]});
    let folder = Folder::with(&[("in.csv", SMALL), ("plan.json", &plan.to_string())]);
    let ended = folder.run(&["check", "in.csv", "plan.json", "--json"]);
    assert_eq!((ended.code, &ended.json()["verdict"]), (Some(1), &json!("wrong-height")));
}
