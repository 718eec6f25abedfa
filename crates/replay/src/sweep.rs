//! Tries the settings that a user of PyTorch could choose on one run: all combinations of the options that matter most,
//! then single changes around the best of each kind of segment.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use lowtide_core::Trace;

use super::outcome::Replay;
use super::script::Script;
use super::strategy::Strategy;
use super::{ReplayError, ReplayOptions, player};
use crate::torch::TorchOptions;

/// `max_split_size_mb`; none leaves it as it was.
const SPLITS: [Option<u64>; 6] = [None, Some(32), Some(64), Some(128), Some(256), Some(512)];
/// `roundup_power2_divisions`; none leaves it as it was.
const DIVISIONS: [Option<u64>; 5] = [None, Some(2), Some(4), Some(8), Some(16)];
const LARGE_SEGMENTS: [u64; 4] = [12, 16, 32, 64];
const NON_SPLIT_ROUNDINGS: [u64; 3] = [64, 128, 256];
const GARBAGE_THRESHOLDS: [f64; 2] = [0.6, 0.8];
/// Garbage is collected only where a part of the memory is set aside.
const FRACTION_FOR_GARBAGE: f64 = 0.95;

/// A setting, and what came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The options; they print as a line of `PYTORCH_ALLOC_CONF`.
    pub options: TorchOptions,
    /// What PyTorch would have done with them.
    pub replay: Replay,
}

impl Setting {
    /// What a setting is chosen by, the least first: that it fits, what is reserved, what the driver costs.
    fn rank(&self) -> impl Ord {
        let Replay { out_of_memory, peak_reserved, calls, .. } = &self.replay;
        let refused = out_of_memory.as_ref().map(|refusal| Reverse((refusal.round, refusal.event)));
        (refused, *peak_reserved, calls.nanoseconds)
    }
}

/// What trying settings came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// Every setting that was tried, in order; the first is the one that the others are changes of.
    pub settings: Vec<Setting>,
    /// Whether the watcher ended it before all were tried.
    pub is_stopped: bool,
}

impl Sweep {
    /// The setting that changes nothing.
    pub fn base(&self) -> &Setting {
        &self.settings[0]
    }

    /// The setting that fits and reserves least; of equal ones that with the cheaper driver calls, then the simpler one.
    pub fn best(&self) -> &Setting {
        best(self.settings.iter()).unwrap_or(self.base())
    }
}

/// How far a sweep has come.
#[derive(Clone, Copy, Debug)]
pub struct SweepProgress<'a> {
    /// Settings that were tried.
    pub tried: usize,
    /// Settings there are to try.
    pub of: usize,
    /// The best so far.
    pub best: Option<&'a Setting>,
}

/// Tries settings around `base` on `trace`. Ends early, with what was tried, where `watch` says so; where nothing was
/// tried by then, that is [`ReplayError::Stopped`].
pub fn sweep(
    trace: &Trace,
    base: &TorchOptions,
    options: &ReplayOptions,
    watch: &mut dyn FnMut(SweepProgress<'_>) -> ControlFlow<()>,
) -> Result<Sweep, ReplayError> {
    options.check()?;
    let script = Script::new(trace, options.repeat)?;
    let mut trial = Trial { script: &script, options, watch, settings: Vec::new() };
    let combined = combinations(base);
    let further = |settings: &[Setting]| -> Vec<TorchOptions> {
        let of_kind = |expandable| settings.iter().filter(move |one| one.options.expandable_segments() == expandable);
        let bests = [false, true].into_iter().filter_map(|expandable| best(of_kind(expandable)));
        bests.flat_map(|best| changes(&best.options, options.device_memory.is_some())).collect()
    };
    let mut ended = trial.all(combined);
    if ended.is_ok() {
        let further = further(&trial.settings);
        ended = trial.all(further);
    }
    let settings = trial.settings;
    match ended {
        Err(ReplayError::Stopped) if !settings.is_empty() => Ok(Sweep { settings, is_stopped: true }),
        ended => ended.map(|()| Sweep { settings, is_stopped: false }),
    }
}

struct Trial<'a, 'b> {
    script: &'a Script<'a>,
    options: &'a ReplayOptions,
    watch: &'b mut dyn FnMut(SweepProgress<'_>) -> ControlFlow<()>,
    settings: Vec<Setting>,
}

impl Trial<'_, '_> {
    fn all(&mut self, candidates: Vec<TorchOptions>) -> Result<(), ReplayError> {
        let mut new: Vec<TorchOptions> = Vec::new();
        for candidate in candidates {
            if !new.contains(&candidate) && self.settings.iter().all(|setting| setting.options != candidate) {
                new.push(candidate);
            }
        }
        let of = self.settings.len() + new.len();
        for options in new {
            let strategy = Strategy::torch(options.clone());
            let (tried, best) = (self.settings.len(), best(self.settings.iter()));
            let watch = &mut self.watch;
            let mut look = |_| watch(SweepProgress { tried, of, best });
            let replay = player::play(self.script, &strategy, self.options, &mut look)?;
            self.settings.push(Setting { options, replay });
        }
        Ok(())
    }
}

/// The first of the best.
fn best<'a>(settings: impl Iterator<Item = &'a Setting>) -> Option<&'a Setting> {
    settings.min_by(|a, b| a.rank().cmp(&b.rank()))
}

/// `base` first, then every combination of the options that matter most.
fn combinations(base: &TorchOptions) -> Vec<TorchOptions> {
    let mut found = vec![base.clone()];
    for expandable in ["False", "True"] {
        for split in SPLITS {
            for divisions in DIVISIONS {
                let parts = [
                    Some(format!("expandable_segments:{expandable}")),
                    split.map(|mebibytes| format!("max_split_size_mb:{mebibytes}")),
                    divisions.map(|divisions| format!("roundup_power2_divisions:{divisions}")),
                ];
                found.extend(changed(base, &parts.into_iter().flatten().collect::<Vec<_>>().join(",")));
            }
        }
    }
    found
}

/// Single changes of a setting by the options that matter less.
fn changes(options: &TorchOptions, has_limit: bool) -> Vec<TorchOptions> {
    let large = LARGE_SEGMENTS.iter().map(|mebibytes| format!("large_segment_size_mb:{mebibytes}"));
    let roundings = NON_SPLIT_ROUNDINGS.iter().filter(|_| options.max_split_size().is_some());
    let roundings = roundings.map(|mebibytes| format!("max_non_split_rounding_mb:{mebibytes}"));
    let thresholds = GARBAGE_THRESHOLDS.iter().filter(|_| has_limit && !options.expandable_segments());
    let garbage = thresholds.map(|threshold| {
        let fraction = options.per_process_memory_fraction().min(FRACTION_FOR_GARBAGE);
        format!("garbage_collection_threshold:{threshold},per_process_memory_fraction:{fraction}")
    });
    large.chain(roundings).chain(garbage).filter_map(|change| changed(options, &change)).collect()
}

/// `options` with a change, where they go together.
fn changed(options: &TorchOptions, change: &str) -> Option<TorchOptions> {
    let line = options.to_string();
    let comma = if line.is_empty() { "" } else { "," };
    format!("{line}{comma}{change}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(options: &[TorchOptions]) -> Vec<String> {
        options.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn combinations_begin_with_what_is_there_and_are_lines_that_pytorch_reads() {
        let found = combinations(&TorchOptions::default());
        assert_eq!(found.len(), 1 + 2 * SPLITS.len() * DIVISIONS.len());
        assert_eq!(found[0], TorchOptions::default());
        let lines = lines(&found);
        assert!(lines.contains(&"max_split_size_mb:32,roundup_power2_divisions:2,expandable_segments:True".to_owned()));
    }

    #[test]
    fn changes_go_together_with_what_is_set() {
        let options: TorchOptions = "max_split_size_mb:32".parse().unwrap();
        let found = lines(&changes(&options, false));
        assert_eq!(found.len(), 3 + 3, "a large segment of 64 MiB does not go with a split of 32: {found:?}");
        assert!(found.iter().all(|line| line.contains("max_split_size_mb:32")), "{found:?}");
        let limited = lines(&changes(&TorchOptions::default(), true));
        let garbage = "garbage_collection_threshold:0.6,per_process_memory_fraction:0.95".to_owned();
        assert!(limited.contains(&garbage), "{limited:?}");
    }
}
