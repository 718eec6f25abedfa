//! The benchmark sets, where they are at hand.

use std::path::PathBuf;

use lowtide_testing::{data, thorough};
use serde_json::{Value, json};

use super::support::{Folder, lowtide};

fn benched(folder: &PathBuf, arguments: &[&str]) -> Value {
    let output = lowtide(&["bench", "plan", "--json"]).args(arguments).arg(folder).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The rows of a benchmark that ends by work, so that it says the same on every machine.
fn rows(name: &str, arguments: &[&str]) -> Option<Vec<Value>> {
    let json = benched(&data(name)?, arguments);
    let rows = json["instances"].as_array().unwrap().clone();
    assert!(!rows.is_empty(), "`{name}` has no instance");
    Some(rows)
}

fn assert_proved(row: &Value) {
    assert_eq!((&row["proved"], &row["ratio"]), (&json!(true), &json!(1.0)), "{row}");
}

#[test]
fn the_challenging_set_fits_one_mebibyte() {
    let Some(rows) = rows("challenging", &["--work", "3000000", "--capacity", "1048576"]) else { return };
    assert_eq!(rows.len(), 11);
    assert!(rows.iter().all(|row| row["fits"] == json!(true)), "{rows:?}");
}

#[test]
fn nine_of_the_challenging_set_are_proved_and_two_are_as_low_as_any_known() {
    if !thorough() {
        return;
    }
    let Some(rows) = rows("challenging", &["--work", "6000000"]) else { return };
    assert_eq!(rows.len(), 11);
    for row in &rows {
        let best_known = match row["file"].as_str().unwrap().rsplit('/').next().unwrap() {
            "D.1048576.csv" => 1_038_336,
            "J.1048576.csv" => 1_039_360,
            _ => {
                assert_proved(row);
                continue;
            }
        };
        assert!(row["peak"].as_u64().unwrap() <= best_known, "{row}");
    }
}

#[test]
fn large_problems_are_planned_near_the_bound() {
    if !thorough() {
        return;
    }
    let Some(rows) = rows("large", &["--work", "20000000"]) else { return };
    for row in &rows {
        if row["file"].as_str().unwrap().ends_with("S_1.csv.gz") {
            assert!(row["ratio"].as_f64().unwrap() <= 1.0025, "{row}");
        } else {
            assert_proved(row);
        }
    }
}

#[test]
fn every_model_and_every_recorded_step_is_planned_to_the_bound() {
    if !thorough() {
        return;
    }
    for name in ["lifetimes", "cpu-traces", "gpu-traces"] {
        rows(name, &["--work", "20000000"]).iter().flatten().for_each(assert_proved);
    }
}

#[test]
fn a_step_of_every_recorded_run_is_planned_and_checked() {
    let Some(folder) = data("gpu-traces") else { return };
    let here = Folder::new();
    let benched = benched(&folder, &["--time-limit", "0.2"]);
    let rows = benched["instances"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let (file, step) = (row["file"].as_str().unwrap(), row["step"].to_string());
        let planned = here.run(&["plan", file, "--step", &step, "--time-limit", "0.1", "-o", "plan.csv"]);
        assert_eq!(planned.code, Some(0), "{file}: {}", planned.talk);
        let checked = here.run(&["check", file, "plan.csv", "--step", &step]);
        assert_eq!(checked.code, Some(0), "{file}: {}", checked.data);
    }
}
