//! `lowtide demo` and `lowtide completions`.

use std::time::{Duration, Instant};

use super::support::Folder;

#[test]
fn the_demo_is_short_and_says_what_to_type_next() {
    let start = Instant::now();
    let folder = Folder::new();
    let ended = folder.run(&["demo"]);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.data.starts_with("peak ") && ended.data.contains("· optimal ·"), "{}", ended.data);
    for words in ["without reuse", "PyTorch had reserved", "planned", "lower bound", "█"] {
        assert!(ended.data.contains(words), "{words}: {}", ended.data);
    }
    assert!(ended.data.lines().skip(1).all(|line| line.chars().count() <= 80), "{}", ended.data);
    assert!(ended.talk.starts_with("wrote lowtide-demo.html; next: "), "{}", ended.talk);
    assert_eq!(folder.list(), ["lowtide-demo.html"]);
    let page = folder.run(&["plan", "lowtide-demo.html"]);
    let without_time = |line: &str| line.rsplit_once(" · ").map(|(numbers, _)| numbers.to_owned());
    assert_eq!(without_time(page.data.lines().next().unwrap()), without_time(ended.data.lines().next().unwrap()));
}

#[test]
fn the_page_of_the_demo_goes_where_it_is_told_to() {
    let folder = Folder::new();
    std::fs::create_dir(folder.at("pages")).unwrap();
    let ended = folder.run(&["demo", "-o", "pages"]);
    assert!(ended.talk.starts_with("wrote pages/lowtide-demo.html; next: "), "{}", ended.talk);
    assert!(folder.run(&["demo", "-o", "mine.html"]).talk.starts_with("wrote mine.html; next: "));
    assert_eq!(folder.list(), ["mine.html", "pages"]);
    let ended = folder.run(&["demo", "-o", "mine.csv"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.talk.contains("the output is neither .html nor a folder"), "{}", ended.talk);
}

#[test]
fn swaps_without_times_come_last_and_say_so() {
    let folder = Folder::new();
    folder.run(&["demo"]);
    let explained = folder.run(&["explain", "lowtide-demo.html"]).data;
    let kinds: Vec<bool> =
        explained.lines().filter(|line| line.contains(", to ")).map(|line| line.contains("swap: ")).collect();
    assert!(!kinds.first().copied().unwrap_or(true) && kinds.is_sorted(), "{explained}");
    let words = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!kinds.contains(&true) || words.contains("without times"), "{explained}");
}

#[test]
fn the_demo_is_also_plain_and_data() {
    let folder = Folder::new();
    assert!(!folder.run(&["demo", "--ascii"]).data.contains('█'));
    let json = folder.run(&["demo", "--json"]).json();
    let number = |key: &str| json[key].as_u64().unwrap();
    assert!(number("lower_bound") <= number("peak") && number("peak") < number("naive"));
    assert!(number("run_peak") < number("run_reserved"));
}

#[test]
fn completions_are_there_for_shells() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = Folder::new().run(&["completions", shell]);
        assert_eq!(ended.code, Some(0), "{shell}");
        assert!(ended.data.contains("time-limit"), "{shell}");
    }
    assert_eq!(Folder::new().run(&["completions", "abacus"]).code, Some(2));
}
