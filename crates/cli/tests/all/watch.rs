//! `lowtide watch` on real processes: shells that keep, hold or let go of variables.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use lowtide_testing::{program, skip};
use serde_json::Value;

use super::support::{BINARY, Ended, Folder, lowtide};

/// Begins a shell program: `keep N` makes a variable of 400 kB.
const SHELL: &str =
    "block=$(printf '%0400000d' 0); keep() { eval \"kept$1=\\$block\"; }; let_go() { unset \"kept$1\"; }; ";

/// Watches a shell that runs `program`, alone, and judges what comes after the first half second.
fn watched(folder: &Folder, options: &[&str], program: &str) -> Ended {
    let program = format!("{SHELL}{program}");
    let words =
        [&["watch", "--alone", "--interval", "0.02", "--warm-up", "0.5"], options, &["--", "sh", "-c", &program]];
    folder.run(&words.concat())
}

fn json(folder: &Folder, program: &str) -> (Option<i32>, Value) {
    let ended = watched(folder, &["--json"], program);
    (ended.code, ended.json())
}

const LEAKING: &str = "n=0; while [ $n -lt 100 ]; do keep $n; n=$((n+1)); sleep 0.02; done";

/// What a leak comes to. Where the machine stood still for a while so did the leak, and it is tried again.
fn leaked(folder: &Folder, options: &[&str], program: &str) -> Ended {
    let once = || watched(folder, &[&["-o", "tried.json"], options].concat(), program);
    (0..3).map(|_| once()).find(|_| folder.read("tried.json").contains("\"reason\":\"grows\"")).unwrap_or_else(once)
}

#[test]
fn a_program_that_keeps_more_and_more_leaks() {
    let folder = Folder::new();
    let ended = leaked(&folder, &["--json"], LEAKING);
    let (code, json) = (ended.code, ended.json());
    assert_eq!((code, &json["verdict"]), (Some(1), &Value::from("leaking")), "{json}");
    assert_eq!((&json["exit_code"], &json["over_time"]["reason"]), (&Value::from(0), &Value::from("grows")));
    let slope = &json["over_time"]["slope_per_minute"];
    let number = |name: &str| slope[name].as_f64().unwrap();
    assert!(number("low") > 0.0 && number("low") <= number("bytes") && number("bytes") <= number("high"), "{slope}");
    assert!(number("confidence") > 0.9 && slope["above_leak_rate"] == true, "{slope}");
    assert!(json["peak"].as_u64().unwrap() > 40_000_000, "{json}");
    assert!(json["minor_faults"].as_u64().unwrap() > 5000 && json["samples"].as_u64().unwrap() > 20, "{json}");
}

#[test]
fn a_spike_hides_no_leak() {
    let Some(python) = program("python3") else { return };
    let folder = Folder::new();
    let program = "kept=[]\nimport time\nfor n in range(500):\n  kept.append(b'x' * (256 << 10)); time.sleep(0.02)\n  \
                   if n == 400: spike = b'x' * (50 << 20); time.sleep(0.05); del spike\n";
    let python = python.to_str().unwrap();
    let words = ["watch", "--json", "--interval", "0.02", "--warm-up", "0.5", "--", python, "-c", program];
    let is_leak = |ended: &Ended| ended.json()["verdict"] == "leaking";
    // Where the machine stands still for a third of a second the spike is none, and it is tried again.
    let ended = (0..3).map(|_| folder.run(&words)).find(is_leak).unwrap_or_else(|| folder.run(&words));
    let json = ended.json();
    assert_eq!((ended.code, &json["verdict"]), (Some(1), &Value::from("leaking")), "{json}");
    assert!(json["peak"].as_u64().unwrap() > 145 << 20, "the spike was seen: {json}");
}

#[test]
fn a_short_program_that_grows_steeply_to_its_end_is_growing() {
    let folder = Folder::new();
    let program = format!("{SHELL}n=0; while [ $n -lt 280 ]; do keep $n; n=$((n+1)); sleep 0.025; done");
    let once = || folder.run(&["watch", "--alone", "-o", "w.json", "--", "sh", "-c", &program]);
    let is_growing = |ended: &Ended| ended.talk.starts_with("growing");
    // Where the machine stands still for a while so does the growth, and it is tried again.
    let ended = (0..3).map(|_| once()).find(is_growing).unwrap_or_else(once);
    assert_eq!(ended.code, Some(1), "{}", ended.talk);
    assert!(ended.talk.starts_with("growing · peak "), "{}", ended.talk);
    assert!(ended.talk.contains(": it grows up to the end; 30 s are needed to call it a leak\n"), "{}", ended.talk);
    assert!(ended.talk.contains("\nhint: watch for 30 s or longer, or say with `--warm-up SECONDS`"), "{}", ended.talk);
    let json: Value = serde_json::from_str(&folder.read("w.json")).unwrap();
    assert_eq!((&json["verdict"], &json["over_time"]["reason"]), (&Value::from("growing"), &Value::from("early")));
    assert!(json["peak"].as_u64().unwrap() > 100_000_000, "{json}");
    let low = json["over_time"]["slope_per_minute"]["low"].as_f64().unwrap();
    assert!(low > f64::from(100 << 20), "{json}");
}

#[test]
fn a_short_program_that_loads_and_then_works_is_fine() {
    let folder = Folder::new();
    let program = format!("{SHELL}n=0; while [ $n -lt 280 ]; do keep $n; n=$((n+1)); done; sleep 6");
    let json = folder.run(&["watch", "--alone", "--json", "--", "sh", "-c", &program]);
    assert_eq!((json.code, &json.json()["verdict"]), (Some(0), &Value::from("stable")), "{}", json.data);
}

#[test]
fn a_program_that_holds_what_it_has_is_stable() {
    let folder = Folder::new();
    let program = "n=0; while [ $n -lt 100 ]; do keep $n; n=$((n+1)); done; sleep 2";
    let (code, json) = json(&folder, program);
    assert_eq!((code, &json["verdict"]), (Some(0), &Value::from("stable")), "{json}");
}

#[test]
fn a_program_that_lets_go_of_what_it_took_is_stable() {
    let folder = Folder::new();
    let program = "for turn in 1 2 3 4 5 6 7 8 9 10 11 12; do \
                   n=0; while [ $n -lt 10 ]; do keep $n; n=$((n+1)); sleep 0.01; done; \
                   n=0; while [ $n -lt 10 ]; do let_go $n; n=$((n+1)); done; done";
    let (code, json) = json(&folder, program);
    assert_eq!((code, &json["verdict"]), (Some(0), &Value::from("stable")), "{json}");
}

#[test]
fn a_leak_that_is_allowed_is_none() {
    let folder = Folder::new();
    let ended = watched(&folder, &["--leak-rate", "10GiB"], LEAKING);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.talk.starts_with("stable · peak ") && ended.data.is_empty(), "{}", ended.talk);
}

#[test]
fn a_code_of_the_program_comes_before_the_verdict() {
    let folder = Folder::new();
    let ended = leaked(&folder, &[], &format!("{LEAKING}; exit 9"));
    assert_eq!(ended.code, Some(9), "{}", ended.talk);
    assert!(ended.talk.starts_with("leaking"), "{}", ended.talk);
    assert_eq!(folder.run(&["watch", "--", "sh", "-c", "kill -9 $$"]).code, Some(137));
    let short = folder.run(&["watch", "--", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!((short.code, short.data.as_str()), (Some(0), "out\n"), "{}", short.talk);
    assert!(short.talk.contains("still warming") && short.talk.contains("too short to tell"), "{}", short.talk);
}

#[test]
fn every_action_has_its_own_peak() {
    let folder = Folder::new();
    let program = "turn=0; while [ $turn -lt 12 ]; do \
                   n=0; while [ $n -lt 25 ]; do keep $n; n=$((n+1)); done; \
                   n=0; while [ $n -lt 25 ]; do let_go $n; n=$((n+1)); done; \
                   echo compile > $LOWTIDE_MARKS; sleep 0.05; echo 'run <it>' > $LOWTIDE_MARKS; sleep 0.05; \
                   turn=$((turn+1)); done";
    let ended = watched(&folder, &["-o", "w.html", "-o", "w.json"], program);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.talk.contains("\naction    count  peak min"), "{}", ended.talk);
    assert!(ended.talk.ends_with("wrote w.html; next: open it in a browser\nwrote w.json\n"), "{}", ended.talk);
    let json: Value = serde_json::from_str(&folder.read("w.json")).unwrap();
    let [compile, run] = json["actions"].as_array().unwrap().as_slice() else { panic!("{json}") };
    assert_eq!((&compile["name"], &compile["count"]), (&Value::from("compile"), &Value::from(12)));
    assert_eq!((&run["name"], &run["count"]), (&Value::from("run <it>"), &Value::from(12)));
    let peak = |action: &Value| action["peak_median"].as_u64().unwrap();
    assert!(peak(compile) > peak(run) + 5_000_000, "{json}");
    assert_eq!((compile["verdict"].as_str(), json["verdict"].as_str()), (Some("stable"), Some("stable")));
    let series = json["series"].as_object().unwrap();
    let lengths: Vec<usize> = series.values().map(|column| column.as_array().unwrap().len()).collect();
    assert!(lengths.iter().all(|&length| length == lengths[0] && length > 10) && lengths.len() == 9, "{lengths:?}");
    let page = folder.read("w.html");
    assert!(page.contains("<td class=\"name\">run &lt;it&gt;</td>") && page.contains("<b class=\"verdict stable\">"));
    assert!(!page.contains("run <it>") && !page.contains("{{"));
}

/// Every turn keeps 800 kB and ends an action.
const GROWING: &str = "turn=0; while [ $turn -lt TURNS ]; do \
                       keep a$turn; keep b$turn; echo compile > $LOWTIDE_MARKS; sleep 0.05; turn=$((turn+1)); done";

#[test]
fn a_peak_that_grows_with_every_repetition_is_a_leak() {
    let folder = Folder::new();
    let ended = watched(&folder, &["--json"], &GROWING.replace("TURNS", "24"));
    let json = ended.json();
    assert_eq!((ended.code, &json["actions"][0]["verdict"]), (Some(1), &Value::from("leaking")), "{json}");
    let growth = json["actions"][0]["growth_each"]["bytes"].as_f64().unwrap();
    assert!((600_000.0..1_000_000.0).contains(&growth), "{json}");
}

#[test]
fn a_cache_that_is_filled_in_a_moment_is_no_leak() {
    let folder = Folder::new();
    for turns in ["10", "24"] {
        let program = format!("{SHELL}{}", GROWING.replace("TURNS", turns));
        let ended = folder.run(&["watch", "--alone", "--json", "--", "sh", "-c", &program]);
        let json = ended.json();
        assert_eq!((ended.code, &json["verdict"]), (Some(0), &Value::from("warming")), "{json}");
        assert_eq!(json["actions"][0]["reason"], "unsure", "{json}");
    }
}

#[test]
fn the_last_marks_are_heard() {
    let folder = Folder::new();
    let program = "sleep 0.05; for n in 1 2 3 4 5; do echo a > $LOWTIDE_MARKS; done; printf b > $LOWTIDE_MARKS";
    for _ in 0..8 {
        let json = folder.run(&["watch", "--json", "--", "sh", "-c", program]).json();
        let count = |place: usize| json["actions"][place]["count"].as_u64();
        assert_eq!((json["marks"].as_u64(), count(0), count(1)), (Some(6), Some(5), Some(1)), "{json}");
    }
}

#[test]
fn steps_that_were_asked_for_and_did_not_come_are_said() {
    let folder = Folder::new();
    let mut command = lowtide(&["watch", "--mark", "step", "-o", "w.json", "--", "/bin/sh", "-c", "sleep 0.1"]);
    command.current_dir(folder.path()).env_remove("LOWTIDE_PYTHON");
    let path = std::env::var_os("PATH").unwrap_or_default();
    for (path, is_warned) in [("/nowhere".into(), true), (path, false)] {
        let output = command.env("PATH", path).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        let warning = "warning: steps of optimizers are not marked: no Python was found that has the package lowtide";
        assert!(!is_warned || talk.starts_with(warning) && talk.contains("\nhint: install it"), "{talk}");
        assert!(talk.contains("\nnote: no step was marked; "), "{talk}");
        let json: Value = serde_json::from_str(&folder.read("w.json")).unwrap();
        assert!(json["notes"][0].as_str().unwrap().starts_with("no step was marked"), "{json}");
    }
}

#[test]
fn a_signal_marks() {
    let folder = Folder::new();
    // One that comes before the last is taken makes no second mark.
    let program = "for n in 1 2 3 4 5; do kill -USR1 $PPID; \
                   until grep -q '^ShdPnd:[[:space:]]*0*$' /proc/$PPID/status; do sleep 0.01; done; done; sleep 0.2";
    let json = folder.run(&["watch", "--json", "--mark-signal", "USR1", "--", "sh", "-c", program]).json();
    assert_eq!((&json["marks"], &json["actions"][0]["name"]), (&Value::from(5), &Value::from("USR1")), "{json}");
}

/// Holds 50 MB for a moment, in a process of its own.
const HOLD: &str = "head -c 50000000 /dev/zero | tail -c 50000000 | wc -c >/dev/null";

#[test]
fn a_process_alone_has_nothing_of_its_children() {
    let folder = Folder::new();
    let program = format!("{HOLD}; sleep 0.2");
    let json = folder.run(&["watch", "--alone", "--json", "--", "sh", "-c", &program]).json();
    assert!(json["peak"].as_u64().unwrap() < 20_000_000, "{json}");
    assert_eq!(json["peak_is_exact"], false, "what came after the last sample is not known: {json}");
    let (alone, tree) = (json["minor_faults"].as_u64().unwrap(), "--tree");
    let tree = folder.run(&["watch", tree, "--json", "--", "sh", "-c", &program]).json();
    assert!(tree["minor_faults"].as_u64().unwrap() > alone + 5000, "{alone} {tree}");
}

#[test]
fn what_a_tree_had_between_two_samples_is_not_exact() {
    let folder = Folder::new();
    let program = format!("sleep 0.1; {HOLD} & {HOLD} & wait");
    let json = folder.run(&["watch", "--json", "--interval", "60", "--", "sh", "-c", &program]).json();
    assert!(json["peak"].as_u64().unwrap() > 45_000_000, "{json}");
    assert_eq!(json["peak_is_exact"], false, "{json}");
}

#[test]
fn a_tree_is_watched_with_its_children() {
    let folder = Folder::new();
    let program = format!(
        "sh -c \"{}n=0; while [ \\$n -lt 50 ]; do keep \\$n; n=\\$((n+1)); done; sleep 0.5\"; :",
        SHELL.replace('$', "\\$").replace("\\\\$", "\\\\\\$").replace('"', "\\\"")
    );
    let run =
        |who: &str| folder.run(&["watch", "--json", who, "--interval", "0.02", "--", "sh", "-c", &program]).json();
    let (tree, alone) = (run("--tree"), run("--alone"));
    assert!(tree["processes"].as_u64() > Some(1) && alone["processes"] == 1, "{tree} {alone}");
    let series = |json: &Value| json["peak"].as_u64().unwrap();
    assert!(series(&tree) > 20_000_000, "{tree}");
}

/// A process that lives until the test is over.
struct Sleeping(Child);

impl Sleeping {
    fn new() -> Self {
        Self(Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_is_watched_for_a_while_or_until_it_ends() {
    let (folder, mut process) = (Folder::new(), Sleeping::new());
    let pid = process.0.id().to_string();
    let ended = folder.run(&["watch", "--pid", &pid, "--for", "0.5"]);
    assert_eq!(ended.code, Some(0), "{}", ended.talk);
    assert!(ended.data.starts_with("still warming · peak ") && ended.talk.is_empty(), "{}{}", ended.data, ended.talk);
    let json = folder.run(&["watch", "--pid", &pid, "--for", "0.3", "--json", "--marks", "marks"]).json();
    assert_eq!((&json["stopped"], &json["exit_code"], &json["command"]), (&true.into(), &Value::Null, &Value::Null));
    assert!(folder.list().is_empty(), "{:?}", folder.list());
    let start = Instant::now();
    let watching = started(&folder, &["--pid", &pid, "--json"]);
    std::thread::sleep(Duration::from_millis(400));
    process.0.kill().unwrap();
    process.0.wait().unwrap();
    let output = watching.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["stopped"]), (Some(0), &Value::from(false)));
}

fn started(folder: &Folder, arguments: &[&str]) -> Child {
    watching(folder, arguments).spawn().unwrap()
}

fn watching(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("watch").args(arguments).current_dir(folder.path()).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn signalled(child: Child, signal: &str) -> Output {
    std::thread::sleep(Duration::from_millis(700));
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

#[test]
fn ctrl_c_ends_the_watching_of_a_process_with_a_verdict() {
    let (folder, process) = (Folder::new(), Sleeping::new());
    let output = signalled(started(&folder, &["--pid", &process.0.id().to_string()]), "-INT");
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("still warming"));
}

#[test]
fn what_would_end_the_watching_ends_the_program() {
    let folder = Folder::new();
    let output = signalled(started(&folder, &["--", "sleep", "60"]), "-TERM");
    assert_eq!(output.status.code(), Some(143));
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.starts_with("still warming"), "{talk}");
}

#[test]
fn ctrl_c_leaves_the_report_of_a_program_written() {
    let folder = Folder::new();
    // A terminal tells every process of the group.
    let program = ["env", "--default-signal=INT", "sleep", "60"];
    let arguments = [&["-o", "w.html", "-o", "w.json", "--"][..], &program].concat();
    let child = watching(&folder, &arguments).process_group(0).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    assert!(Command::new("kill").args(["-INT", "--", &format!("-{}", child.id())]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{talk}");
    assert!(talk.ends_with("wrote w.html; next: open it in a browser\nwrote w.json\n"), "{talk}");
    let json: Value = serde_json::from_str(&folder.read("w.json")).unwrap();
    assert!(json["samples"].as_u64() > Some(2) && json["exit_code"] == 130, "{json}");
    assert!(folder.read("w.html").contains("<b class=\"verdict warming\">"));
}

#[test]
fn a_process_that_has_ended_cannot_be_watched() {
    let folder = Folder::new();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let ended = folder.run(&["watch", "--pid", &gone.id().to_string()]);
    assert_eq!(ended.code, Some(2), "{}", ended.talk);
    assert!(ended.talk.starts_with(&format!("error: there is no process {}\nhint: ", gone.id())), "{}", ended.talk);
}

/// The user that nobody is.
const NOBODY: u32 = 65534;

#[test]
fn a_process_of_another_user_is_watched_without_its_peaks() {
    let (folder, process) = (Folder::new(), Sleeping::new());
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let pid = if is_root { process.0.id() } else { 1 };
    let mut command = watching(&folder, &["--pid", &pid.to_string(), "--json", "--mark-signal", "USR1"]);
    if is_root {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    } else if std::fs::metadata("/proc/1").is_ok_and(|first| first.uid() != 0) {
        return skip("there is no process of another user");
    }
    let child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return skip(&format!("another user may not run {BINARY}"));
        }
        started => started.unwrap(),
    };
    for signal in ["-USR1", "-USR1", "-INT"] {
        std::thread::sleep(Duration::from_millis(400));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    }
    let output = child.wait_with_output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &json["peak_is_exact"]), (Some(0), &Value::from(false)), "{json}");
    assert_eq!((&json["actions"][0]["count"], &json["stopped"]), (&Value::from(2), &Value::from(true)));
    let notes = json["notes"].as_array().unwrap();
    let told = "the system refuses to reset the peak (permission denied); \
                the peak of an action is the highest that was seen";
    assert_eq!(notes, &[Value::from(told)], "it is said once");
}

#[test]
fn an_output_that_cannot_be_written_is_said_before_the_program_starts() {
    let folder = Folder::new();
    let mut outputs = vec!["no/such/w.html", "/proc/w.json"];
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        let closed = folder.at("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
        outputs.push("closed/w.json");
    }
    for output in outputs {
        let ended = folder.run(&["watch", "-o", output, "--", "touch", "started"]);
        assert_eq!(ended.code, Some(2), "{}", ended.talk);
        assert!(ended.talk.starts_with(&format!("error: {output}: ")) && ended.talk.contains("\nhint: "));
        assert!(!folder.at("started").exists(), "{output}");
    }
}

#[test]
fn what_cannot_be_written_in_the_end_takes_neither_the_verdict_nor_the_code_with_it() {
    let folder = Folder::new();
    for (own, code) in [(0, 2), (9, 9)] {
        std::fs::create_dir(folder.at("gone")).unwrap();
        let program = format!("rmdir gone; exit {own}");
        let outputs = ["-o", "gone/w.html", "-o", "gone/x.html", "-o", "w.json"];
        let ended = folder.run(&[&["watch"], &outputs[..], &["--", "sh", "-c", &program]].concat());
        assert_eq!(ended.code, Some(code), "{}", ended.talk);
        assert!(ended.talk.starts_with("still warming · "), "{}", ended.talk);
        for lost in ["gone/w.html", "gone/x.html"] {
            assert!(ended.talk.contains(&format!("\nerror: {lost}: ")), "{}", ended.talk);
        }
        assert_eq!(std::fs::remove_file(folder.at("w.json")).ok(), Some(()), "{}", ended.talk);
    }
}
