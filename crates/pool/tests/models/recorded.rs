//! What PyTorch reserved at most in the recorded runs, and what the models do.

use std::sync::Arc;

use lowtide_memory::{Simulated, SimulatedOptions};
use lowtide_pool::TorchOptions;

use crate::replay::{read, recordings, replay};

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

fn compare(figures: &[(&str, u64)], options: &TorchOptions) {
    let Some(folder) = recordings() else { return };
    let off = figures.iter().map(|&(name, figure)| {
        let trace = read(folder.join(format!("{name}.csv.gz")));
        let device = Arc::new(Simulated::new(SimulatedOptions::default()).unwrap());
        let pool = options.clone().pool(device.clone());
        let reserved = replay(&trace, &device, &*pool).peak_reserved.get();
        let off = reserved as f64 / figure as f64 - 1.0;
        (off.abs() > TOLERANCE, format!("{name}: {reserved} for {figure}, {:+.2}%", 100.0 * off))
    });
    let (off, near): (Vec<_>, Vec<_>) = off.partition(|&(is_off, _)| is_off);
    assert!(off.is_empty(), "too far off: {off:#?}\nnear: {near:#?}");
}

#[test]
fn caching_reserves_what_pytorch_reserved() {
    compare(&CACHING, &TorchOptions::default());
}

#[test]
fn expandable_reserves_what_pytorch_reserved() {
    compare(&EXPANDABLE, &"expandable_segments:True".parse().unwrap());
}
