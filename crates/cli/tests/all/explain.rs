//! `lowtide explain`: who is alive, what was late, what would help.

use serde_json::{Value, json};

use super::support::{Folder, SMALL};

/// Three steps in which the output of one is kept until the next has made its own.
fn steps() -> String {
    let mut rows =
        vec!["event,id,bytes,stream,category,site".to_owned(), "alloc,w,1000,0,parameter,net.py:1 build".to_owned()];
    for step in 1..=3 {
        rows.push(format!("alloc,h{step},600,0,activation,net.py:7 forward"));
        rows.push(format!("alloc,out{step},500,0,activation,net.py:9 loss"));
        if step > 1 {
            rows.push(format!("free,out{},,,,", step - 1));
        }
        rows.push(format!("alloc,g{step},100,0,gradient,"));
        rows.push(format!("free,h{step},,,,"));
        rows.push(format!("free,g{step},,,,"));
        rows.push(format!("step,{step},,,,"));
    }
    rows.join("\n") + "\n"
}

fn explained(arguments: &[&str]) -> Value {
    let folder = Folder::with(&[("t.csv", &steps()), ("l.csv", SMALL)]);
    let ended = folder.run(&[&["explain"], arguments, &["--json"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    ended.json()
}

#[test]
fn the_peak_is_told_with_who_is_alive_and_since_when() {
    let json = explained(&["t.csv"]);
    assert_eq!((&json["live"], &json["step"]), (&json!(2600), &json!(2)));
    let alive: Vec<(&str, u64, i64)> = json["alive"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one["bytes"].as_u64().unwrap(), one["since"].as_i64().unwrap()))
        .collect();
    assert_eq!(alive, [("w", 1000, 0), ("h2", 600, 7), ("out1", 500, 2), ("out2", 500, 8)]);
    assert_eq!(json["alive"][0]["site"], json!("net.py:1 build"));
}

#[test]
fn what_is_kept_for_the_next_step_is_found_and_its_cost_is_exact() {
    let json = explained(&["t.csv"]);
    let late = json["late"].as_array().unwrap();
    let kept = late.iter().find(|late| late["why"] == json!("replaced")).unwrap_or_else(|| panic!("{json:#}"));
    // Without the old output, the highest moment is that of the gradient: 1000 + 600 + 500 + 100.
    assert_eq!(kept["saves"], json!(400));
    assert!(kept["buffers"].as_array().unwrap().contains(&json!("out1")), "{kept}");
    for remedy in json["remedies"].as_array().unwrap() {
        let (saves, peak) = (remedy["saves"].as_u64().unwrap(), remedy["peak"].as_u64().unwrap());
        assert!(saves > 0 && saves + peak == 2600, "{remedy}");
    }
    let is_swap = |remedy: &Value| remedy["kind"] == json!("swap") || remedy["change"] == json!("swap");
    let ranks: Vec<(bool, u64)> = json["remedies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|remedy| (is_swap(remedy), u64::MAX - remedy["saves"].as_u64().unwrap()))
        .collect();
    assert!(ranks.is_sorted(), "what saves most, and swaps last, for which there are no times: {ranks:?}");
}

#[test]
fn another_moment_can_be_asked_for() {
    let at_event = explained(&["t.csv", "--at", "1"]);
    assert_eq!(
        (&at_event["event"], &at_event["live"], &at_event["peak_live"]),
        (&json!(1), &json!(1600), &json!(2600))
    );
    let at_step = explained(&["t.csv", "--at", "step:1"]);
    assert_eq!((&at_step["step"], &at_step["live"]), (&json!(1), &json!(2200)));
    let folder = Folder::with(&[("t.csv", &steps()), ("l.csv", SMALL)]);
    for (input, at, words) in [
        ("t.csv", "step:9", "no step 9; it closes steps 1 to 3"),
        ("t.csv", "999", "there is no event 999"),
        ("l.csv", "step:1", "it closes none"),
        ("t.csv", "soon", "write an event such as 5321"),
    ] {
        let ended = folder.run(&["explain", input, "--at", at]);
        assert_eq!(ended.code, Some(2), "{at}: {}", ended.data);
        assert!(ended.talk.contains(words) && ended.talk.contains("hint: "), "{at}: {}", ended.talk);
    }
}

#[test]
fn an_event_is_asked_for_as_it_is_printed() {
    let mut rows = vec!["event,id,bytes,stream".to_owned()];
    rows.extend((0..1500).map(|id| format!("alloc,{id},512,0")));
    let folder = Folder::with(&[("long.csv", &(rows.join("\n") + "\n"))]);
    let json = folder.run(&["explain", "long.csv", "--at", "1,137", "--json"]).json();
    assert_eq!(json["event"], json!(1137));
    assert_eq!(folder.run(&["explain", "long.csv", "--at", "1,13"]).code, Some(2), "two numbers are none");
}

#[test]
fn pins_that_contradict_each_other_are_named() {
    let pinned = "id,lower,upper,size,offset\na,0,4,100,0\nb,2,8,50,64\n";
    let folder = Folder::with(&[("p.csv", pinned)]);
    let words = "no plan: buffers `a` and `b` are pinned over each other while both are alive";
    let ended = folder.run(&["explain", "p.csv"]);
    assert_eq!(ended.code, Some(1), "{}", ended.data);
    assert!(ended.talk.contains(words) && ended.data.contains("peak 150 B"), "{}{}", ended.talk, ended.data);
    for verb in ["plan", "report"] {
        let ended = folder.run(&[verb, "p.csv"]);
        assert_eq!(ended.code, Some(1), "{verb}: {}", ended.talk);
        assert!(ended.data.contains(words), "{verb}: {}", ended.data);
    }
}

#[test]
fn a_page_of_watch_is_told_from_a_report_that_was_cut() {
    let folder = Folder::new();
    let ended = folder.run(&["watch", "-o", "w.html", "--", "sleep", "1"]);
    assert!(folder.at("w.html").exists(), "{}", ended.talk);
    for verb in ["explain", "plan", "report"] {
        let ended = folder.run(&[verb, "w.html"]);
        assert_eq!(ended.code, Some(2), "{verb}");
        assert!(ended.talk.contains("this is a page of `lowtide watch`"), "{verb}: {}", ended.talk);
        assert!(ended.talk.contains("hint: open it in a browser; `lowtide record"), "{verb}: {}", ended.talk);
    }
}

#[test]
fn the_text_is_for_eighty_columns_and_ends_with_what_to_type() {
    let folder = Folder::with(&[("t.csv", &steps())]);
    for ascii in [false, true] {
        let arguments: &[&str] = if ascii { &["explain", "t.csv", "--ascii"] } else { &["explain", "t.csv"] };
        let ended = folder.run(arguments);
        assert_eq!(ended.code, Some(0), "{}", ended.talk);
        assert!(ended.data.lines().all(|line| line.chars().count() <= 80), "{}", ended.data);
        assert!(!ascii || ended.data.is_ascii(), "{}", ended.data);
        for words in
            ["peak 2.5 KiB at event 8 of step 2", "freed too late", "what would lower the peak, one change at a time"]
        {
            assert!(ended.data.contains(words), "{words}: {}", ended.data);
        }
        assert!(ended.talk.contains("next: `lowtide report t.csv -o report.html`"), "{}", ended.talk);
    }
    let empty = Folder::with(&[("e.csv", "id,lower,upper,size\n")]);
    let ended = empty.run(&["explain", "e.csv"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.data.contains("no single change was found"), "{}", ended.data);
}
