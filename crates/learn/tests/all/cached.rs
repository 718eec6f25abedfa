//! Plans remembered from run to run, and files that are none.

use lowtide_learn::{Learner, LearnerOptions};
use std::fs;
use std::path::{Path, PathBuf};

use crate::player::{Op, Player, at_once, chain, lane, sizes};

fn with(folder: &Path) -> LearnerOptions {
    LearnerOptions { cache: Some(folder.to_owned()), ..at_once() }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A folder with the plan of one step, and the step: a wrap-around block, one that stays, and a chain.
fn remembered() -> (tempfile::TempDir, Vec<Op>) {
    let folder = tempfile::tempdir().unwrap();
    let step = chain(lane(0), 0, &sizes(20, 1));
    let mut player = Player::new(with(folder.path()));
    for _ in 0..3 {
        player.step(&step);
    }
    assert_eq!(files(folder.path()).len(), 1);
    assert!(player.learner.warnings().is_empty());
    (folder, step)
}

#[test]
fn the_first_step_of_the_next_run_is_planned() {
    let (folder, step) = remembered();
    let mut player = Player::new(with(folder.path()));
    assert!(player.plan.is_some());
    let served = player.step(&step);
    assert_eq!((served.hits, served.misses), (40, 0));
    assert_eq!(player.learner.candidates().len(), 1, "it is the same pattern");
    assert!(player.learner.warnings().is_empty());
}

#[test]
fn threads_may_have_other_numbers_in_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let step = |a: u64, b: u64| [chain(lane(a), 0, &sizes(20, 1)), chain(lane(b), 1000, &sizes(20, 2))].concat();
    let mut player = Player::new(with(folder.path()));
    for _ in 0..3 {
        player.step(&step(1, 2));
    }
    for (a, b) in [(71, 72), (2, 1), (1, 72)] {
        let mut player = Player::new(with(folder.path()));
        player.step(&step(a, b));
        let served = player.step(&step(a, b));
        assert_eq!((served.hits, served.misses), (80, 0), "threads {a} and {b}");
    }
}

#[test]
fn set_up_before_the_first_step_does_not_hide_it() {
    let (folder, step) = remembered();
    let mut first: Vec<Op> = (0..200).map(|name| Op::Alloc(lane(0), 500_000 + name, 512 * (name % 7 + 1))).collect();
    first.extend(&step);
    let mut player = Player::new(with(folder.path()));
    let plan = player.plan.clone().unwrap();
    let served = player.step(&first);
    assert!(served.hits >= 37, "{served:?}");
    assert_eq!(player.plan.as_ref().unwrap().signature, plan.signature, "it goes on being served");
    assert_eq!(player.step(&step).misses, 0);
}

#[test]
fn the_plan_used_last_is_offered_first() {
    let folder = tempfile::tempdir().unwrap();
    let steps = [chain(lane(0), 0, &sizes(20, 1)), chain(lane(0), 0, &sizes(25, 5))];
    for used in [0, 1, 0, 1] {
        let mut player = Player::new(with(folder.path()));
        for _ in 0..4 {
            player.step(&steps[used]);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        let next = Learner::new(with(folder.path())).likely_next().unwrap();
        assert_eq!(next.slots.len(), steps[used].iter().filter(|op| matches!(op, Op::Alloc(..))).count());
    }
}

#[test]
fn a_damaged_file_is_ignored_with_a_warning() {
    let (folder, step) = remembered();
    let path = files(folder.path()).remove(0);
    let good = fs::read(&path).unwrap();
    let damaged = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let text = String::from_utf8(good.clone()).unwrap();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("cut off", good[..good.len() / 2].to_vec()),
        ("cut off in its last line", good[..good.len() - 3].to_vec()),
        ("another version", text.replacen("plan 1", "plan 2", 1).into_bytes()),
        ("a bit flipped in front", damaged(25)),
        ("a bit flipped in the middle", damaged(good.len() / 2)),
        ("no text", vec![0xff; 100]),
        ("a checksum alone", b"lowtide step plan 1\nchecksum 0\n".to_vec()),
    ];
    for (what, bytes) in cases {
        fs::write(&path, bytes).unwrap();
        let mut learner = Learner::new(with(folder.path()));
        let warnings = learner.warnings();
        assert_eq!(warnings.len(), 1, "{what}: {warnings:?}");
        assert!(warnings[0].contains(path.to_str().unwrap()), "{what}: {warnings:?}");
        assert!(learner.likely_next().is_none(), "{what}");
    }
    let mut player = Player::new(with(folder.path()));
    player.step(&step);
    assert_eq!(fs::read(&path).unwrap(), good, "it is written anew");
}

/// The text with its checksum made right again: the way that the format defines it.
fn with_checksum(body: &str) -> String {
    let mix = |hash: u64, value: u64| {
        let mixed = (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    };
    let word = |hash: u64, bytes: &[u8]| mix(hash, bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
    let sum = body.as_bytes().chunks(8).fold(body.len() as u64, word);
    format!("{body}checksum {sum:016x}\n")
}

#[test]
fn a_hostile_file_with_a_right_checksum_is_ignored_with_a_warning() {
    let (folder, _) = remembered();
    let path = files(folder.path()).remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let body = &text[..text.rfind("checksum").unwrap()];
    assert_eq!(with_checksum(body), text);
    let slots = body.find("slots 40\n").unwrap() + "slots 40\n".len();
    let with_slot = |slot: &str| {
        let rest = &body[slots..][body[slots..].find('\n').unwrap()..];
        format!("{}{slot}{rest}", &body[..slots])
    };
    let zero_offsets: String =
        body[slots..].lines().flat_map(|line| [line.rsplit_once(' ').unwrap().0, " 0\n"]).collect();
    let cases = [
        body.replace("slots 40", "slots 18446744073709551615"),
        body.replace("slots 40", "slots 39"),
        body.replace("slots 40", "slots -1"),
        body.replace("lanes 1", "lanes 4000000000"),
        body.replace("lanes 1\n0 0\n", "lanes 2\n0 0\n0 0\n"),
        with_slot("9 38912 512 within 2 2 0 0"),
        with_slot("0 38912 0 within 2 2 0 0"),
        with_slot("0 38912 512 within 0 0 0 0"),
        with_slot("0 38912 512 within 4294967295 4294967295 0 0"),
        with_slot("0 18446744073709551615 512 within 2 2 0 0"),
        with_slot("0 9223372036854775807 512 within 2 2 0 18446744073709551104"),
        with_slot("0 38912 512 wraps 99 0 0 0"),
        with_slot("0 38912 512 forever 2 2 0 0"),
        with_slot("0 38912 512"),
        with_slot(""),
        format!("{}{zero_offsets}", &body[..slots]),
        body.replace("height ", "height 1"),
        body.replace("bound ", "bound 99"),
        body.replacen("signature ", "signature f", 1),
    ];
    for (case, hostile) in cases.iter().enumerate() {
        fs::write(&path, with_checksum(hostile)).unwrap();
        let mut learner = Learner::new(with(folder.path()));
        let warnings = learner.warnings();
        // A greater height than is needed is no lie that could hurt.
        assert_eq!(warnings.len(), usize::from(case != 16), "case {case}: {warnings:?}\n{hostile}");
        assert_eq!(learner.likely_next().is_none(), case != 16, "case {case}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(Learner::new(with(folder.path())).warnings().len(), 1, "a folder in place of a file");
    let mut huge = text.clone();
    huge.push_str(&" ".repeat(65 << 20));
    fs::remove_dir(&path).unwrap();
    fs::write(&path, huge).unwrap();
    assert!(Learner::new(with(folder.path())).warnings()[0].contains("larger"));
}

#[test]
fn a_folder_that_cannot_be_used_costs_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut player = Player::new(with(&file));
    assert_eq!(player.learner.warnings().len(), 1);
    player.step(&chain(lane(0), 0, &sizes(20, 1)));
    assert!(player.plan.is_some());
    assert_eq!(player.learner.warnings().len(), 1, "it cannot be written either");
    assert!(Learner::new(with(&folder.path().join("none"))).warnings().is_empty(), "a first run is nothing to warn of");
}
