//! The benchmark sets, where they are at hand.

use std::io::{self, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::support::{Folder, lowtide};

/// The folder `name` of the benchmark data; says so where it is not there.
fn data(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("LOWTIDE_DATA").map(|root| PathBuf::from(root).join(name));
    let found = folder.filter(|folder| folder.is_dir());
    if found.is_none() {
        // Straight to stderr, so that it is seen also where the output of tests is captured.
        let _ = writeln!(io::stderr(), "skipped: the data set `{name}` needs LOWTIDE_DATA, the folder that holds it");
    }
    found
}

fn benched(folder: &PathBuf, arguments: &[&str]) -> Value {
    let output = lowtide(&["bench", "plan", "--json"]).args(arguments).arg(folder).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_file_of_the_challenging_set_is_planned() {
    let Some(folder) = data("challenging") else { return };
    let json = benched(&folder, &["--time-limit", "0.2"]);
    assert_eq!((&json["totals"]["instances"], &json["totals"]["skipped"]), (&json!(11), &json!(0)));
    for row in json["instances"].as_array().unwrap() {
        assert!(row["ratio"].as_f64().unwrap() < 1.5, "{row}");
    }
}

#[test]
fn a_step_of_every_recorded_run_is_planned_and_checked() {
    let Some(folder) = data("gpu-traces") else { return };
    let here = Folder::new();
    for row in benched(&folder, &["--time-limit", "0.2"])["instances"].as_array().unwrap() {
        let (file, step) = (row["file"].as_str().unwrap(), row["step"].to_string());
        let planned = here.run(&["plan", file, "--step", &step, "--time-limit", "0.1", "-o", "plan.csv"]);
        assert_eq!(planned.code, Some(0), "{file}: {}", planned.talk);
        let checked = here.run(&["check", file, "plan.csv", "--step", &step]);
        assert_eq!(checked.code, Some(0), "{file}: {}", checked.data);
    }
}
