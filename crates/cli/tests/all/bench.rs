//! `lowtide bench plan`: its table, its rivals, and what it skips.

use serde_json::{Value, json};

use super::support::{BINARY, Folder, SMALL, hard};

const TRACE: &str = "event,id,bytes,stream\nalloc,w,64,0\nstep,1,,0\nalloc,x,32,0\nfree,x,,0\nstep,2,,0\n\
                     alloc,y,32,0\nstep,3,,0\n";

#[test]
fn a_table_has_a_row_per_file_and_totals() {
    let folder = Folder::with(&[("b.csv", SMALL), ("a.csv", TRACE), ("broken.csv", "no,header\n"), ("note.txt", "")]);
    let ended = folder.run(&["bench", "plan", "."]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    let lines: Vec<&str> = ended.data.lines().collect();
    assert_eq!(lines.len(), 5, "{}", ended.data);
    let columns: Vec<&str> = lines[0].split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect();
    assert_eq!(columns, ["file", "buffers", "peak", "bound", "ratio", "proved", "CPU s", "wall s"]);
    assert!(lines[1].starts_with("./a.csv step 2") || lines[1].starts_with("a.csv step 2"), "{}", ended.data);
    assert!(lines[2].contains("b.csv") && lines[2].contains("1.0000") && lines[2].contains("yes"), "{}", ended.data);
    assert!(lines[3].starts_with("geometric mean, totals") && lines[3].contains("2 of 2"), "{}", ended.data);
    assert!(lines[4].starts_with("skipped: 1 (") && lines[4].contains("broken.csv"), "{}", ended.data);
    assert!(ended.talk.contains("skipped ./broken.csv:1: unknown header"), "{}", ended.talk);
}

#[test]
fn json_has_the_whole_of_it() {
    let folder = Folder::with(&[("a.csv", SMALL), ("b.csv", "x\n")]);
    let json = folder.run(&["bench", "plan", "a.csv", "b.csv", "--json", "--synthetic", "50:10"]).json();
    assert_eq!(json["version"], json!(1));
    let rows = json["instances"].as_array().unwrap();
    assert_eq!((&rows[0]["file"], &rows[0]["buffers"]), (&json!("synthetic 50:10"), &json!(50)));
    assert!(rows[0]["peak_memory"].as_u64().unwrap() > 1 << 20);
    assert_eq!((&rows[1]["file"], &rows[1]["peak"], &rows[1]["proved"]), (&json!("a.csv"), &json!(150), &json!(true)));
    assert!(rows[1]["cpu_seconds"].is_f64() && rows[1]["seconds"].is_f64());
    assert_eq!(json["skipped"][0]["name"], json!("b.csv"));
    assert_eq!((&json["totals"]["instances"], &json["totals"]["skipped"]), (&json!(2), &json!(1)));
}

fn with_rivals(rivals: &[&str]) -> (Value, String) {
    let folder = Folder::with(&[("a.csv", SMALL), ("b.csv", SMALL)]);
    let rivals: Vec<&str> = rivals.iter().flat_map(|rival| ["--rival", rival]).collect();
    let ended = folder.run(&[&["bench", "plan", "a.csv", "b.csv", "--json"][..], &rivals].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    (ended.json(), ended.talk)
}

#[test]
fn a_rival_runs_on_the_same_files_and_is_judged() {
    let stacked = r#"stacked=awk -F, 'NR > 1 { print $1 "," sum + 0; sum += $4; next } { print "id,offset" }' {input} > {output}"#;
    let own = format!("own={BINARY} plan {{input}} -o {{output}} --capacity {{capacity}} --time-limit {{time}}");
    let wrong = "wrong=sed 's/$/,0/; 1s/,0$/,offset/' {input} > {output}";
    let (json, talk) = with_rivals(&[stacked, &own, wrong]);
    for row in json["instances"].as_array().unwrap() {
        let peaks: Vec<&Value> = (0..3).map(|rival| &row["rivals"][rival]["peak"]).collect();
        assert_eq!(peaks, [&json!(250), &json!(150), &Value::Null], "{talk}");
        let reason = row["rivals"][2]["reason"].as_str().unwrap();
        assert!(reason.starts_with("its plan does not hold: buffers `a` and `b`"), "{reason}");
    }
    let totals = &json["totals"]["rivals"];
    assert_eq!((&totals[0]["planned"], &totals[2]["planned"]), (&json!(2), &json!(0)));
    let mean = totals[0]["ratio_geometric_mean"].as_f64().unwrap();
    assert!((mean - 250.0 / 150.0).abs() < 1e-9, "{mean}");
}

#[test]
fn a_rival_that_is_not_there_is_skipped_loudly_and_once() {
    let (json, talk) = with_rivals(&["absent=no-such-planner {input} {output}"]);
    assert_eq!(talk.matches("skipped rival absent").count(), 1, "{talk}");
    assert_eq!(json["rivals_skipped"][0]["name"], json!("absent"));
    assert!(json["instances"][0].get("rivals").is_none());
}

#[test]
fn a_table_shows_rivals_and_those_without_a_plan() {
    let folder = Folder::with(&[("a.csv", SMALL)]);
    let ended = folder.run(&["bench", "plan", "a.csv", "--rival", "lazy=true {input} {output}"]);
    assert!(ended.data.contains("lazy peak  lazy ratio  lazy CPU s"), "{}", ended.data);
    assert!(ended.data.contains("none") && ended.talk.contains("lazy has no plan for a.csv: it wrote no plan"));
}

#[test]
fn a_capacity_that_some_do_not_fit_is_a_no() {
    let folder = Folder::with(&[("a.csv", SMALL), ("b.csv", "id,lower,upper,size\na,0,1,10\n")]);
    let ended = folder.run(&["bench", "plan", ".", "--capacity", "149"]);
    assert_eq!(ended.code, Some(1), "{}", ended.talk);
    assert!(ended.data.contains("fits") && ended.data.contains("1 of 2"), "{}", ended.data);
    assert_eq!(folder.run(&["bench", "plan", ".", "--capacity", "150"]).code, Some(0));
}

#[test]
fn nothing_to_plan_is_bad_input() {
    let folder = Folder::with(&[("a.csv", "x\n")]);
    let ended = folder.run(&["bench", "plan", "."]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.talk.contains("error: nothing could be planned; 1 file skipped"), "{}", ended.talk);
    assert_eq!(folder.run(&["bench", "plan", "no-such-folder"]).code, Some(2));
}

#[test]
fn a_file_that_is_not_there_ends_it_before_anything_is_planned() {
    let folder = Folder::with(&[("mine.csv", SMALL)]);
    for paths in [["missing.csv", "mine.csv"], ["mine.csv", "missing"]] {
        let ended = folder.run(&[&["bench", "plan"][..], &paths].concat());
        assert_eq!((ended.code, &*ended.data), (Some(2), ""));
        assert!(ended.talk.starts_with("error: missing") && ended.talk.contains(": cannot open: "), "{}", ended.talk);
    }
}

#[test]
fn two_rivals_of_one_name_are_refused() {
    let folder = Folder::with(&[("a.csv", SMALL)]);
    let rival = "x=true {input} {output}";
    let ended = folder.run(&["bench", "plan", "a.csv", "--rival", rival, "--rival", rival]);
    assert_eq!((ended.code, &*ended.data), (Some(2), ""));
    assert!(ended.talk.starts_with("error: there are two rivals called `x`\nhint: "), "{}", ended.talk);
}

#[test]
fn the_help_says_which_step_is_taken() {
    let folder = Folder::new();
    let help = |verb: &[&str]| folder.run(&[verb, &["--help"]].concat()).data;
    assert!(help(&["bench", "plan"]).contains("instead of the middle one of each"));
    assert!(!help(&["bench", "plan"]).contains("instead of the whole run"));
    assert!(help(&["plan"]).contains("instead of the whole run"));
    let whole = help(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains("1 the answer is no, or none was found in time;"), "{whole}");
}

#[test]
fn made_problems_are_the_same_every_time() {
    let folder = Folder::new();
    folder.write("made.csv", &hard(100, 20));
    let planned = |arguments: &[&str]| folder.run(arguments).json()["instances"][0]["lower_bound"].clone();
    let made = planned(&["bench", "plan", "--synthetic", "100:20", "--seed", "7", "--json", "--work", "1"]);
    assert_eq!(made, planned(&["bench", "plan", "made.csv", "--json", "--work", "1"]));
}
