//! What PyTorch reserved at most in the recorded runs, and what the models do.

use lowtide_replay::{Strategy, TorchOptions};

use crate::support::{caching, expandable, play, recording, recordings};

const REQUESTED: [(&str, u64); 7] = [
    ("llama_fixed", 21_009_773_064),
    ("llama_varlen", 25_099_384_456),
    ("mixtral_moe", 10_266_610_952),
    ("resnet50", 11_785_936_912),
    ("maskrcnn", 32_442_100_822),
    ("llama_generate", 4_435_606_313),
    ("offload", 21_602_365_800),
];

const CACHING: [(&str, u64); 7] = [
    ("llama_fixed", 22_145_925_120),
    ("llama_varlen", 28_720_496_640),
    ("mixtral_moe", 13_365_149_696),
    ("resnet50", 14_682_161_152),
    ("maskrcnn", 61_685_628_928),
    ("llama_generate", 5_221_908_480),
    ("offload", 26_384_269_312),
];

const EXPANDABLE: [(&str, u64); 5] = [
    ("llama_fixed", 22_368_223_232),
    ("llama_varlen", 25_641_877_504),
    ("mixtral_moe", 10_661_920_768),
    ("resnet50", 11_886_657_536),
    ("maskrcnn", 34_884_026_368),
];

/// How far a model may be off: a segment or two.
const TOLERANCE: f64 = 0.001;

fn compare(figures: &[(&str, u64)], strategy: &Strategy) {
    let Some(folder) = recordings() else { return };
    let off = figures.iter().map(|&(name, figure)| {
        let reserved = play(&recording(&folder, name), strategy).peak_reserved.get();
        let off = reserved as f64 / figure as f64 - 1.0;
        (off.abs() > TOLERANCE, format!("{name}: {reserved} for {figure}, {:+.2}%", 100.0 * off))
    });
    let (off, near): (Vec<_>, Vec<_>) = off.partition(|&(is_off, _)| is_off);
    assert!(off.is_empty(), "too far off: {off:#?}\nnear: {near:#?}");
}

#[test]
fn what_is_requested_is_what_was_recorded() {
    let Some(folder) = recordings() else { return };
    for (name, requested) in REQUESTED {
        let replay = play(&recording(&folder, name), &caching());
        assert_eq!((replay.peak_requested.get(), replay.bound.get()), (requested, requested), "{name}");
    }
}

#[test]
fn caching_reserves_what_pytorch_reserved() {
    compare(&CACHING, &caching());
}

#[test]
fn expandable_reserves_what_pytorch_reserved() {
    compare(&EXPANDABLE, &expandable());
}

#[test]
fn a_line_of_settings_chooses_the_model() {
    let chosen = |line: &str| Strategy::torch(line.parse::<TorchOptions>().unwrap()).name();
    assert_eq!([chosen(""), chosen("expandable_segments:True")], ["caching", "expandable"]);
}
